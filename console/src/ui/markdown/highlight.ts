const setOf = (list: string) => new Set(list.split(" "));

/** Keywords of common languages in one list: this is simple highlighting, not a parser. */
const keywords = setOf(
  "abstract and as assert async await begin bool break case catch class const continue crate def default defer del do done elif else end enum esac except export extends extern False fi final finally fn for foreach from fun func function go goto if impl implements import in instanceof int interface is lambda let local loop match mod module move mut namespace new nil None not null or override package pass private protected pub public raise ref require return select self Self static string struct super switch then this throw throws trait True true false try type typeof undefined union unless unsafe until use using val var virtual void when where while with yield " +
    "SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX VIEW DROP ALTER JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT OFFSET AS AND OR NOT NULL IS IN DISTINCT UNION ALL CASE WHEN THEN ELSE END WITH PRIMARY KEY REFERENCES",
);

const hashComments = setOf("python py sh bash shell zsh yaml yml toml ruby rb perl r dockerfile make makefile nix elixir conf ini");
const dashComments = setOf("sql lua haskell hs ada");
const plain = setOf("text txt plain plaintext console output log diff markdown md");

const slashPattern = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|\b(0x[\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b|([A-Za-z_][\w]*)/g;
const hashPattern = /(#[^\n]*)|("""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)|\b(0x[\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b|([A-Za-z_][\w]*)/g;
const dashPattern = /(--[^\n]*)|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\n]|'')*'?)|\b(\d[\d_]*(?:\.\d+)?)\b|([A-Za-z_][\w]*)/g;

/** Longer code is not highlighted. */
const maxLength = 40_000;

/** Highlights comments, strings, numbers and keywords. Returns escaped HTML. */
export function highlight(code: string, language: string): string {
  const name = language.toLowerCase();
  if (plain.has(name) || name === "" || code.length > maxLength) return escape(code);
  const pattern = hashComments.has(name) ? hashPattern : dashComments.has(name) ? dashPattern : slashPattern;
  let html = "";
  let offset = 0;
  for (const match of code.matchAll(pattern)) {
    const [all, comment, string, number, word] = match;
    const kind =
      comment !== undefined ? "c" : string !== undefined ? "s" : number !== undefined ? "n" : word !== undefined && keywords.has(word) ? "k" : "";
    if (kind === "") continue;
    html += `${escape(code.slice(offset, match.index))}<span class="tok-${kind}">${escape(all)}</span>`;
    offset = match.index + all.length;
  }
  return html + escape(code.slice(offset));
}

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[character] ?? character);
}

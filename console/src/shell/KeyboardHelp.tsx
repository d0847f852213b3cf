import { useText, type Dictionary } from "../text";
import { Dialog, Kbd } from "../ui";
import style from "./KeyboardHelp.module.css";

type Shortcut = readonly [keys: readonly string[], description: keyof Dictionary["keys"]];

const everywhere: readonly Shortcut[] = [
  [["?"], "help"],
  [["/"], "search"],
  [["g", "r"], "goRuns"],
  [["g", "i"], "goInbox"],
  [["g", "t"], "goThreads"],
  [["g", "a"], "goAgents"],
  [["Esc"], "close"],
];

const lists: readonly Shortcut[] = [
  [["j"], "next"],
  [["k"], "previous"],
  [["Enter"], "open"],
];

const runs: readonly Shortcut[] = [
  [["a"], "answer"],
  [["Ctrl", "Enter"], "send"],
  [["f"], "follow"],
  [["←", "↑", "→", "↓"], "walk"],
  [["+", "−", "0"], "zoom"],
];

/** Dialog with the keyboard shortcuts. */
export function KeyboardHelp({ open, onClose }: { open: boolean; onClose(): void }) {
  const { t } = useText();
  return (
    <Dialog open={open} onClose={onClose} title={t.keys.title}>
      <Section title={t.keys.everywhere} rows={everywhere} />
      <Section title={t.keys.lists} rows={lists} />
      <Section title={t.keys.runs} rows={runs} />
    </Dialog>
  );
}

function Section({ title, rows }: { title: string; rows: readonly Shortcut[] }) {
  const { t } = useText();
  return (
    <section className={style["section"]}>
      <h3 className={style["title"]}>{title}</h3>
      <dl>
        {rows.map(([keys, description]) => (
          <div key={description} className={style["row"]}>
            <dt>{t.keys[description]}</dt>
            <dd className={style["keys"]}>
              {keys.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

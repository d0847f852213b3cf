/** A picture as it can be shown. */
export interface Picture {
  /** The address; only what lies in the data itself is loaded. */
  address: string;
  inside: boolean;
  words: string | undefined;
}

const inside = /^data:image\/(?:png|jpe?g|gif|webp|avif|bmp|svg\+xml)[;,]/i;
const base64 = /^[a-z0-9+/\s]+={0,2}$/i;

/** Reads a picture: an address, or its bytes as base64. Gives nothing for what is none. */
export function readPicture(data: unknown, metadata?: unknown): Picture | undefined {
  if (typeof data === "string") return pictureOf(data, undefined, wordsIn(metadata));
  if (typeof data !== "object" || data === null) return undefined;
  const fields = data as Readonly<Record<string, unknown>>;
  const source = [fields["url"], fields["src"], fields["image_url"], fields["data"], fields["base64"], fields["image"], fields["content"]].find(
    (each) => typeof each === "string" && each !== "",
  );
  if (typeof source !== "string") return undefined;
  const kind = [fields["mime_type"], fields["mimeType"], fields["media_type"], fields["content_type"]].find((each) => typeof each === "string");
  return pictureOf(source, kind as string | undefined, wordsIn(fields) ?? wordsIn(metadata));
}

function pictureOf(source: string, kind: string | undefined, words: string | undefined): Picture | undefined {
  if (inside.test(source)) return { address: source, inside: true, words };
  if (/^https?:\/\//i.test(source)) return { address: source, inside: false, words };
  if (source.length < 64 || !base64.test(source.slice(0, 2048))) return undefined;
  const address = `data:${kind ?? "image/png"};base64,${source.replaceAll(/\s/g, "")}`;
  return inside.test(address) ? { address, inside: true, words } : undefined;
}

function wordsIn(fields: unknown): string | undefined {
  if (typeof fields !== "object" || fields === null) return undefined;
  const { alt, name, title, description } = fields as Readonly<Record<string, unknown>>;
  return [alt, name, title, description].find((each): each is string => typeof each === "string" && each !== "");
}

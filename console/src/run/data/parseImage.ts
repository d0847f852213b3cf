/** An image to show. */
export interface ParsedImage {
  /** URL of the image; only data URLs are loaded. */
  url: string;
  isEmbedded: boolean;
  alt: string | undefined;
}

const embedded = /^data:image\/(?:png|jpe?g|gif|webp|avif|bmp|svg\+xml)[;,]/i;
const base64 = /^[a-z0-9+/\s]+={0,2}$/i;

/** Parses an image: a URL, or its bytes as base64. Returns undefined if the data is not an image. */
export function parseImage(data: unknown, metadata?: unknown): ParsedImage | undefined {
  if (typeof data === "string") return toImage(data, undefined, altOf(metadata));
  if (typeof data !== "object" || data === null) return undefined;
  const fields = data as Readonly<Record<string, unknown>>;
  const source = [fields["url"], fields["src"], fields["image_url"], fields["data"], fields["base64"], fields["image"], fields["content"]].find(
    (each) => typeof each === "string" && each !== "",
  );
  if (typeof source !== "string") return undefined;
  const kind = [fields["mime_type"], fields["mimeType"], fields["media_type"], fields["content_type"]].find((each) => typeof each === "string");
  return toImage(source, kind as string | undefined, altOf(fields) ?? altOf(metadata));
}

function toImage(source: string, kind: string | undefined, alt: string | undefined): ParsedImage | undefined {
  if (embedded.test(source)) return { url: source, isEmbedded: true, alt };
  if (/^https?:\/\//i.test(source)) return { url: source, isEmbedded: false, alt };
  if (source.length < 64 || !base64.test(source.slice(0, 2048))) return undefined;
  const url = `data:${kind ?? "image/png"};base64,${source.replaceAll(/\s/g, "")}`;
  return embedded.test(url) ? { url, isEmbedded: true, alt } : undefined;
}

function altOf(fields: unknown): string | undefined {
  if (typeof fields !== "object" || fields === null) return undefined;
  const { alt, name, title, description } = fields as Readonly<Record<string, unknown>>;
  return [alt, name, title, description].find((each): each is string => typeof each === "string" && each !== "");
}

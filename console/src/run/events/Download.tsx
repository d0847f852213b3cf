import { useState } from "react";
import { client } from "../../client";
import { useText } from "../../text";
import { Button, copyText } from "../../ui";
import { commandOf, type Framing } from "./command";
import style from "./Events.module.css";

interface DownloadProps {
  run: string;
  dialect: string;
  framing: Framing;
  /** The place that the command begins after; the start without it. */
  after?: string | undefined;
}

/** Takes a stream out of the page: as a command for a terminal, or as a file. */
export function Download({ run, dialect, framing, after }: DownloadProps) {
  const { t } = useText();
  const [isBusy, setBusy] = useState(false);
  const [told, setTold] = useState("");
  const copy = async () => {
    const isDone = await copyText(commandOf({ origin: location.origin, run, dialect, framing, after }));
    setTold(isDone ? t.action.copied : t.inspect.notCopied);
    setTimeout(() => setTold(""), 1500);
  };
  const save = async () => {
    setBusy(true);
    try {
      const response = await client.runs.open(run, { framing: "ndjson", dialect, follow: false });
      saveFile(await response.blob(), `${fileName(run)}.${dialect}.ndjson`);
    } catch {
      setTold(t.inspect.notSaved);
    } finally {
      setBusy(false);
    }
  };
  return (
    <span className={style["take"]}>
      <Button size="small" variant="quiet" icon="copy" onClick={() => void copy()}>
        {framing === "websocket" ? t.inspect.command : t.inspect.curl}
      </Button>
      <Button size="small" variant="quiet" icon="download" busy={isBusy} onClick={() => void save()}>
        {t.inspect.download}
      </Button>
      <span role="status" className={style["told"]}>
        {told}
      </span>
    </span>
  );
}

/** Hands a file to the person. */
function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser has to have begun to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Ids may hold what a file's name must not. */
function fileName(id: string): string {
  return id.replace(/[^\w.-]+/g, "_").slice(0, 80);
}

import { useState } from "react";
import { client } from "../../client";
import { useText } from "../../text";
import { Button, copyText } from "../../ui";
import { shellCommand, type Framing } from "./shellCommand";
import style from "./Events.module.css";

interface ExportButtonsProps {
  run: string;
  dialect: string;
  framing: Framing;
  /** Cursor that the command starts after. Default: the beginning. */
  after?: string | undefined;
}

/** Buttons that copy a shell command for the stream, or download it. */
export function ExportButtons({ run, dialect, framing, after }: ExportButtonsProps) {
  const { t } = useText();
  const [isBusy, setBusy] = useState(false);
  const [statusText, setStatusText] = useState("");
  const copy = async () => {
    const isCopied = await copyText(shellCommand({ origin: location.origin, run, dialect, framing, after }));
    setStatusText(isCopied ? t.action.copied : t.inspect.notCopied);
    setTimeout(() => setStatusText(""), 1500);
  };
  const save = async () => {
    setBusy(true);
    try {
      const response = await client.runs.open(run, { framing: "ndjson", dialect, follow: false });
      saveFile(await response.blob(), `${fileName(run)}.${dialect}.ndjson`);
    } catch {
      setStatusText(t.inspect.notSaved);
    } finally {
      setBusy(false);
    }
  };
  return (
    <span className={style["export"]}>
      <Button size="small" variant="quiet" icon="copy" onClick={() => void copy()}>
        {framing === "websocket" ? t.inspect.command : t.inspect.curl}
      </Button>
      <Button size="small" variant="quiet" icon="download" busy={isBusy} onClick={() => void save()}>
        {t.inspect.download}
      </Button>
      <span role="status" className={style["exportStatus"]}>
        {statusText}
      </span>
    </span>
  );
}

/** Starts the download of a file. */
function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser must have started to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Replaces characters that a file name must not contain. */
function fileName(id: string): string {
  return id.replace(/[^\w.-]+/g, "_").slice(0, 80);
}

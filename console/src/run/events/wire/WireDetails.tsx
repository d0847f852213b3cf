import { useText } from "../../../text";
import { CopyButton, IconButton } from "../../../ui";
import type { RecordRow } from "./AlignedRecords";
import details from "../EventDetails.module.css";

interface WireDetailsProps {
  row: RecordRow;
  /** The dialect of each side. */
  dialects: readonly string[];
  onClose(): void;
}

/** Longer texts are truncated, because they would block the page; the download has them. */
const maxTextLength = 200_000;

/** The complete frames of a record. */
export function WireDetails({ row, dialects, onClose }: WireDetailsProps) {
  const { t } = useText();
  return (
    <aside className={details["details"]} aria-label={t.inspect.details}>
      <header className={details["head"]}>
        <h2 className={details["type"]}>{t.inspect.record(row.seq)}</h2>
        <IconButton icon="cross" label={t.action.close} size="small" onClick={onClose} />
      </header>
      <div className={details["body"]} tabIndex={0} role="group" aria-label={t.inspect.content}>
        {dialects.map((name, side) => {
          const text = row.sides[side as 0 | 1].map((frame) => frame.text).join("\n");
          return (
            <div key={`${name} ${side}`} className={details["frame"]}>
              <div className={details["copy"]}>
                <span className={details["faint"]}>{name}</span>
                {text !== "" && <CopyButton text={text} />}
              </div>
              {text === "" ? <p className={details["noFrame"]}>{t.inspect.noFrame}</p> : <pre className={details["raw"]}>{text.slice(0, maxTextLength)}</pre>}
            </div>
          );
        })}
      </div>
    </aside>
  );
}

import { useText } from "../../../text";
import { Copy, IconButton } from "../../../ui";
import type { Row } from "./align";
import details from "../EventDetails.module.css";

interface WireDetailsProps {
  row: Row;
  /** The dialect of each side. */
  names: readonly string[];
  onClose(): void;
}

/** A longer text would stall the page; the download has it. */
const longest = 200_000;

/** Shows everything that was sent for one record, with no line cut. */
export function WireDetails({ row, names, onClose }: WireDetailsProps) {
  const { t } = useText();
  return (
    <aside className={details["details"]} aria-label={t.inspect.details}>
      <header className={details["head"]}>
        <h2 className={details["type"]}>{t.inspect.record(row.seq)}</h2>
        <IconButton icon="cross" label={t.action.close} size="small" onClick={onClose} />
      </header>
      <div className={details["body"]} tabIndex={0} role="group" aria-label={t.inspect.content}>
        {names.map((name, side) => {
          const text = row.sides[side as 0 | 1].map((piece) => piece.text).join("\n");
          return (
            <div key={`${name} ${side}`} className={details["frame"]}>
              <div className={details["copy"]}>
                <span className={details["faint"]}>{name}</span>
                {text !== "" && <Copy text={text} />}
              </div>
              {text === "" ? <p className={details["none"]}>{t.inspect.noFrame}</p> : <pre className={details["exact"]}>{text.slice(0, longest)}</pre>}
            </div>
          );
        })}
      </div>
    </aside>
  );
}

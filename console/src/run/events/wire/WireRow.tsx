import { useText } from "../../../text";
import { classes } from "../../../ui";
import type { Framing } from "../command";
import { longestLine, shownLines, type Row } from "./align";
import style from "./Wire.module.css";

interface WireRowProps {
  row: Row;
  isDouble: boolean;
  framing: Framing;
  isSelected: boolean;
  onSelect(): void;
}

/** One record as it is on the wire: every line that the server sent for it. */
export function WireRow({ row, isDouble, framing, isSelected, onSelect }: WireRowProps) {
  return (
    <div id={`record-${row.seq}`} role="option" aria-selected={isSelected} className={classes(style["row"], isSelected && style["selected"])} onClick={onSelect}>
      <span className={classes(style["seq"], "figures")}>{row.seq}</span>
      <Side row={row} side={0} framing={framing} />
      {isDouble && <Side row={row} side={1} framing={framing} />}
    </div>
  );
}

function Side({ row, side, framing }: { row: Row; side: 0 | 1; framing: Framing }) {
  const { t } = useText();
  const pieces = row.sides[side];
  if (pieces.length === 0) {
    return (
      <span className={classes(style["side"], style["empty"])}>
        <span aria-hidden="true">—</span>
        <span className="unseen">{t.inspect.noFrame}</span>
      </span>
    );
  }
  return (
    <span className={style["side"]}>
      {pieces.flatMap((piece, place) => shownLines(piece.text).map((line, at) => <Line key={`${place} ${at}`} line={line} framing={framing} />))}
    </span>
  );
}

/** A line; what belongs to the framing and not to the frame is fainter. */
function Line({ line, framing }: { line: string; framing: Framing }) {
  const shown = line.slice(0, longestLine);
  const [, field, rest] = (framing === "sse" && /^(id: ?|event: ?|data: ?|retry: ?|:)(.*)$/s.exec(shown)) || [];
  if (field === undefined) return <span className={style["line"]}>{shown}</span>;
  return (
    <span className={style["line"]}>
      <span className={style["field"]}>{field}</span>
      <span className={field.startsWith("data") ? undefined : style["field"]}>{rest}</span>
    </span>
  );
}

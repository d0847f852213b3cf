import { useText } from "../../../text";
import { classNames } from "../../../ui";
import type { Framing } from "../shellCommand";
import { maxLineLength, linesOf, type RecordRow } from "./AlignedRecords";
import style from "./Wire.module.css";

interface WireRowProps {
  row: RecordRow;
  isDouble: boolean;
  framing: Framing;
  isSelected: boolean;
  onSelect(): void;
}

/** Row of a record: the lines that the server sent for it. */
export function WireRow({ row, isDouble, framing, isSelected, onSelect }: WireRowProps) {
  return (
    <div id={`record-${row.seq}`} role="option" aria-selected={isSelected} className={classNames(style["row"], isSelected && style["selected"])} onClick={onSelect}>
      <span className={classNames(style["seq"], "tabular-nums")}>{row.seq}</span>
      <Side row={row} side={0} framing={framing} />
      {isDouble && <Side row={row} side={1} framing={framing} />}
    </div>
  );
}

function Side({ row, side, framing }: { row: RecordRow; side: 0 | 1; framing: Framing }) {
  const { t } = useText();
  const frames = row.sides[side];
  if (frames.length === 0) {
    return (
      <span className={classNames(style["side"], style["empty"])}>
        <span aria-hidden="true">—</span>
        <span className="visually-hidden">{t.inspect.noFrame}</span>
      </span>
    );
  }
  return (
    <span className={style["side"]}>
      {frames.flatMap((frame, frameIndex) => linesOf(frame.text).map((line, lineIndex) => <Line key={`${frameIndex} ${lineIndex}`} line={line} framing={framing} />))}
    </span>
  );
}

/** A line; the framing is dimmed. */
function Line({ line, framing }: { line: string; framing: Framing }) {
  const truncated = line.slice(0, maxLineLength);
  const [, field, rest] = (framing === "sse" && /^(id: ?|event: ?|data: ?|retry: ?|:)(.*)$/s.exec(truncated)) || [];
  if (field === undefined) return <span className={style["line"]}>{truncated}</span>;
  return (
    <span className={style["line"]}>
      <span className={style["field"]}>{field}</span>
      <span className={field.startsWith("data") ? undefined : style["field"]}>{rest}</span>
    </span>
  );
}

import { useRouter } from "../../router";
import { useText } from "../../text";
import { SegmentedControl } from "../../ui";
import type { RunTabProps } from "../tabProps";
import { TimelineView } from "./TimelineView";
import { WireView } from "./wire/WireView";
import "./families.css";
import style from "./Events.module.css";

/** Tab of the events: a timeline, or the frames on the wire in any dialect and framing. */
export function EventsTab({ id, run }: RunTabProps) {
  const { t } = useText();
  const { query, setQuery } = useRouter();
  const view = query.get("view") === "wire" ? "wire" : "timeline";
  const viewSwitch = (
    <SegmentedControl
      label={t.inspect.view}
      value={view}
      options={[
        { value: "timeline", name: t.inspect.timeline },
        { value: "wire", name: t.inspect.wire },
      ]}
      onChange={(next) => setQuery({ view: next === "wire" ? "wire" : null })}
    />
  );
  return <section className={style["tab"]}>{view === "wire" ? <WireView id={id} run={run} viewSwitch={viewSwitch} /> : <TimelineView id={id} run={run} viewSwitch={viewSwitch} />}</section>;
}

import { isClosed } from "@runwire/client";
import { useRouter } from "../../router";
import { useText } from "../../text";
import { Empty, Loading, SegmentedControl } from "../../ui";
import type { RunTabProps } from "../tabProps";
import { GraphView } from "./GraphView";
import { TreeView } from "./TreeView";
import style from "./Thoughts.module.css";

/** Tab of the thoughts: a tree or a graph. */
export function ThoughtsTab({ run }: RunTabProps) {
  const { t } = useText();
  const { query, setQuery } = useRouter();
  const { tot, got } = run.view.thoughts;
  if (tot === undefined && got === undefined) {
    return run.isCaughtUp ? <Empty icon="branch" title={t.inspect.noThoughts} detail={t.inspect.noThoughtsDetail} /> : <Loading lines={6} />;
  }
  const kind = got !== undefined && (tot === undefined || query.get("thoughts") === "graph") ? "graph" : "tree";
  const isList = query.get("as") === "list";
  const viewSwitches = (
    <>
      {tot !== undefined && got !== undefined && (
        <SegmentedControl
          label={t.inspect.thoughts}
          value={kind}
          options={[
            { value: "tree", name: t.inspect.tree },
            { value: "graph", name: t.inspect.graph },
          ]}
          onChange={(next) => setQuery({ thoughts: next === "graph" ? "graph" : null })}
        />
      )}
      <SegmentedControl
        label={t.inspect.view}
        value={isList ? "list" : "drawing"}
        options={[
          { value: "drawing", name: t.inspect.drawing },
          { value: "list", name: t.inspect.list },
        ]}
        onChange={(next) => setQuery({ as: next === "list" ? "list" : null })}
      />
    </>
  );
  const startedAt = run.view.startedAt ?? 0;
  const isLive = run.isCaughtUp && !isClosed(run.status);
  return (
    <section className={style["tab"]}>
      {kind === "graph" && got !== undefined ? (
        <GraphView graph={got} startedAt={startedAt} isLive={isLive} isList={isList} viewSwitches={viewSwitches} />
      ) : (
        tot !== undefined && <TreeView tree={tot} startedAt={startedAt} isLive={isLive} isList={isList} viewSwitches={viewSwitches} />
      )}
    </section>
  );
}

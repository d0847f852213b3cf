import type { TotNode, TotTree } from "@runwire/client";
import { useText } from "../../text";
import { Badge, IconButton, JsonTree } from "../../ui";
import { toneOf } from "./statusStyle";
import style from "./Thoughts.module.css";

interface TreePanelProps {
  node: TotNode;
  tree: TotTree;
  startedAt: number;
  isOnPath: boolean;
  onClose(): void;
}

/** Details of a thought. */
export function TreePanel({ node, tree, startedAt, isOnPath, onClose }: TreePanelProps) {
  const { t, format } = useText();
  const isRoot = node.parent === undefined;
  const backtracks = tree.backtracks.filter((backtrack) => backtrack.from === node.id || backtrack.to === node.id);
  const textOf = (id: string) => tree.nodes.find((each) => each.id === id)?.text || t.inspect.start;
  return (
    <aside className={style["panel"]} aria-live="polite" aria-label={t.inspect.details}>
      <header className={style["panelHeader"]}>
        <h2>{t.inspect.thought}</h2>
        <IconButton icon="cross" label={t.action.close} size="small" onClick={onClose} />
      </header>
      <p className={style["fullText"]}>{isRoot ? t.inspect.start : node.text}</p>
      {!isRoot && (
        <p>
          <Badge tone={isOnPath ? "good" : toneOf[node.status]}>{isOnPath ? t.inspect.onPath : t.inspect.tot[node.status]}</Badge>
        </p>
      )}
      <dl className={style["metadata"]}>
        {node.score !== undefined && (
          <>
            <dt>{t.inspect.score}</dt>
            <dd className="tabular-nums">{format.number(node.score)}</dd>
          </>
        )}
        <dt>{t.inspect.depth}</dt>
        <dd className="tabular-nums">{node.depth}</dd>
        {node.visit !== undefined && (
          <>
            <dt>{t.inspect.visit}</dt>
            <dd className="tabular-nums">{node.visit}</dd>
          </>
        )}
        <dt>{t.inspect.createdAfter}</dt>
        <dd className="tabular-nums">{format.duration(node.at - startedAt)}</dd>
      </dl>
      {backtracks.map((backtrack) => (
        <div key={backtrack.at}>
          <h3>{t.inspect.backtracking}</h3>
          <p className={style["secondary"]}>{t.inspect.backtrack(textOf(backtrack.from), textOf(backtrack.to))}</p>
          {backtrack.reason !== undefined && <p>{backtrack.reason}</p>}
        </div>
      ))}
      {typeof node.value === "object" && node.value !== null && (
        <div>
          <h3>{t.inspect.value}</h3>
          <JsonTree value={node.value} depth={3} label={t.inspect.value} />
        </div>
      )}
    </aside>
  );
}

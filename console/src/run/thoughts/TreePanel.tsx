import type { TotNode, TotTree } from "@runwire/client";
import { useText } from "../../text";
import { Badge, IconButton, JsonTree } from "../../ui";
import { toneOfThought } from "./states";
import style from "./Thoughts.module.css";

interface TreePanelProps {
  node: TotNode;
  tree: TotTree;
  startedAt: number;
  isOnPath: boolean;
  onClose(): void;
}

/** Shows one thought of a tree whole. */
export function TreePanel({ node, tree, startedAt, isOnPath, onClose }: TreePanelProps) {
  const { t, format } = useText();
  const isRoot = node.parent === undefined;
  const backs = tree.backtracks.filter((back) => back.from === node.id || back.to === node.id);
  const textOf = (id: string) => tree.nodes.find((each) => each.id === id)?.text || t.inspect.start;
  return (
    <aside className={style["panel"]} aria-live="polite" aria-label={t.inspect.details}>
      <header className={style["panelHead"]}>
        <h2>{t.inspect.thought}</h2>
        <IconButton icon="cross" label={t.action.close} size="small" onClick={onClose} />
      </header>
      <p className={style["whole"]}>{isRoot ? t.inspect.start : node.text}</p>
      {!isRoot && (
        <p>
          <Badge tone={isOnPath ? "good" : toneOfThought[node.status]}>{isOnPath ? t.inspect.onPath : t.inspect.tot[node.status]}</Badge>
        </p>
      )}
      <dl className={style["facts"]}>
        {node.score !== undefined && (
          <>
            <dt>{t.inspect.score}</dt>
            <dd className="figures">{format.number(node.score)}</dd>
          </>
        )}
        <dt>{t.inspect.depth}</dt>
        <dd className="figures">{node.depth}</dd>
        {node.visit !== undefined && (
          <>
            <dt>{t.inspect.visit}</dt>
            <dd className="figures">{node.visit}</dd>
          </>
        )}
        <dt>{t.inspect.cameUp}</dt>
        <dd className="figures">{format.duration(node.at - startedAt)}</dd>
      </dl>
      {backs.map((back) => (
        <div key={back.at}>
          <h3>{t.inspect.wentBack}</h3>
          <p className={style["soft"]}>{t.inspect.back(textOf(back.from), textOf(back.to))}</p>
          {back.reason !== undefined && <p>{back.reason}</p>}
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

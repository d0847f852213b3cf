import { client, usePolled } from "../client";
import { Link, useRouter } from "../router";
import { RunTable } from "../runs/RunTable";
import { useRunList } from "../runs/useRunList";
import { useText } from "../text";
import { Badge, Empty, ErrorAlert, Loading, Page } from "../ui";
import { StartForm } from "./StartForm";
import { localizedAgent } from "./localized";
import style from "./AgentPage.module.css";

const recentRuns = 10;

/** Page of an agent: description, start form and recent runs. */
export function AgentPage({ name }: { name: string }) {
  const { t, language } = useText();
  const { query } = useRouter();
  const { data, error, refresh } = usePolled("agents", (signal) => client.agents.list(signal), { interval: 0 });
  const runs = useRunList({ agent: name });
  const agent = data?.agents.find((agent) => agent.name === name);
  const localized = agent === undefined ? null : localizedAgent(agent, language);
  const newest = runs.items?.slice(0, recentRuns) ?? [];

  return (
    <Page
      title={localized?.title ?? name}
      width="reading"
      above={<Link to={{ name: "agents" }}>{t.agents.title}</Link>}
      below={
        agent && (
          <span className={style["metadata"]}>
            <span className="mono">{agent.name}</span>
            <Badge>{t.agents.kind[agent.kind]}</Badge>
            <Badge>{agent.dialect}</Badge>
          </span>
        )
      }
    >
      {error !== undefined && <ErrorAlert error={error} onRetry={refresh} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && agent === undefined && (
        <Empty icon="agents" title={t.agents.unknown} detail={t.agents.unknownDetail(name)} />
      )}
      {localized !== null && (
        <>
          {localized.description !== null && <p className={style["description"]}>{localized.description}</p>}
          <StartForm agent={name} examples={localized.examples} thread={query.get("thread") ?? ""} />
        </>
      )}
      {newest.length > 0 && (
        <section className={style["recent"]}>
          <header className={style["head"]}>
            <h2>{t.agents.recent}</h2>
            <Link to={`/runs?agent=${encodeURIComponent(name)}`}>{t.agents.allRuns}</Link>
          </header>
          <RunTable runs={newest} label={t.agents.recent} without="agent" />
        </section>
      )}
    </Page>
  );
}

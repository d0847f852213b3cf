import { useRef } from "react";
import type { Agent } from "@runwire/client";
import { client, usePolled } from "../client";
import { Link } from "../router";
import { useText } from "../text";
import { Badge, Empty, ErrorAlert, Loading, Page, useRowKeys } from "../ui";
import { localizedAgent } from "./localized";
import style from "./AgentsPage.module.css";

/** List of the agents. */
export function AgentsPage() {
  const { t } = useText();
  const { data, error, refresh } = usePolled("agents", (signal) => client.agents.list(signal), { interval: 0 });
  const container = useRef<HTMLUListElement>(null);
  const agents = data?.agents ?? [];
  useRowKeys(
    agents.map((agent) => agent.name),
    container,
  );
  return (
    <Page title={t.agents.title}>
      {error !== undefined && <ErrorAlert error={error} onRetry={refresh} />}
      {data === undefined && error === undefined && <Loading />}
      {data?.agents.length === 0 && <Empty icon="agents" title={t.agents.empty} detail={t.agents.emptyDetail} />}
      <ul ref={container} aria-label={t.agents.list} className={style["grid"]}>
        {agents.map((agent) => (
          <AgentCard key={agent.name} agent={agent} />
        ))}
      </ul>
    </Page>
  );
}

function AgentCard({ agent }: { agent: Agent }) {
  const { t, language } = useText();
  const localized = localizedAgent(agent, language);
  return (
    <li className={style["card"]}>
      <h2 className={style["title"]}>
        <Link to={{ name: "agent", id: agent.name }} className={style["link"]} data-row={agent.name}>
          {localized.title}
        </Link>
      </h2>
      {localized.description !== null && <p className={style["description"]}>{localized.description}</p>}
      <p className={style["metadata"]}>
        {localized.title !== agent.name && <span className="mono">{agent.name}</span>}
        <Badge>{t.agents.kind[agent.kind]}</Badge>
        <Badge>{agent.dialect}</Badge>
      </p>
    </li>
  );
}

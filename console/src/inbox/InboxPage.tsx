import { useRef } from "react";
import { useOpenInteractions } from "../client";
import { useText } from "../text";
import { Empty, ErrorAlert, Loading, Page, useRowKeys } from "../ui";
import { InteractionCard } from "./InteractionCard";
import { keyOf, useListedInteractions } from "./useListedInteractions";
import style from "./InboxPage.module.css";

/** List of the open interactions of all runs. */
export function InboxPage() {
  const { t } = useText();
  const inbox = useOpenInteractions();
  const listed = useListedInteractions(inbox.interactions);
  const container = useRef<HTMLUListElement>(null);
  useRowKeys(listed.map(keyOf), container);
  const count = inbox.interactions.length;
  const onAnswered = () => void inbox.refresh();
  return (
    <Page title={t.inbox.title} width="reading" below={count > 0 ? t.inbox.count(count) : undefined}>
      {inbox.error !== undefined && listed.length === 0 && <ErrorAlert error={inbox.error} onRetry={() => void inbox.refresh()} />}
      {inbox.isLoading && <Loading />}
      {!inbox.isLoading && inbox.error === undefined && count === 0 && (
        <Empty icon="inbox" title={t.inbox.empty} detail={t.inbox.emptyDetail} />
      )}
      {listed.length > 0 && (
        <ul ref={container} aria-label={t.inbox.list} className={style["list"]}>
          {listed.map((interaction) => (
            <InteractionCard
              key={keyOf(interaction)}
              interaction={interaction}
              expanded={interaction.kind === "approval" || listed.length === 1}
              onAnswered={onAnswered}
            />
          ))}
        </ul>
      )}
    </Page>
  );
}

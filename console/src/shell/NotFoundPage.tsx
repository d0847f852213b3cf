import { Link } from "../router";
import { useText } from "../text";
import { Empty, Page } from "../ui";

/** Page of an unknown URL. */
export function NotFoundPage() {
  const { t } = useText();
  return (
    <Page title={t.notFound.title}>
      <Empty title={t.notFound.detail}>
        <Link to={{ name: "runs" }}>{t.notFound.home}</Link>
      </Empty>
    </Page>
  );
}

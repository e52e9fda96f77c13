package route_test

import (
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	op := loom.OperationRef{Cluster: 42, Number: 3}
	task := loom.TaskRef{Operation: op, Number: 12}
	tests := map[string]string{
		route.Home():                                              "/",
		route.Login(""):                                           "/login",
		route.Login("/clusters?q=a b"):                            "/login?next=%2Fclusters%3Fq%3Da+b",
		route.Logout():                                            "/logout",
		route.CSPReports():                                        "/csp-reports",
		route.Account():                                           "/account",
		route.AccountKeys():                                       "/account/keys",
		route.AccountPassword(""):                                 "/account/password",
		route.AccountPreferences():                                "/account/preferences",
		route.AccountTokens():                                     "/account/tokens",
		route.AccountToken(7, "revoke"):                           "/account/tokens/7/revoke",
		route.AccountSessions():                                   "/account/sessions",
		route.Catalog():                                           "/catalog",
		route.Services():                                          "/services",
		route.CatalogTemplate("web-cluster"):                      "/catalog/web-cluster",
		route.CatalogService("nginx"):                             "/catalog/services/nginx",
		route.Events():                                            "",
		route.Events("clusters", "op:00000042/3"):                 "/events?topics=clusters%2Cop%3A00000042%2F3",
		route.System():                                            "/system",
		route.Admin():                                             "/admin",
		route.AdminUsers():                                        "/admin/users",
		route.AdminResources():                                    "/admin/resources",
		route.AdminKind(loom.KindHardwareType):                    "/admin/hardware-types",
		route.AdminNew(loom.KindImageType):                        "/admin/image-types/new",
		route.AdminEntry(loom.KindService, "a/b?c"):               "/admin/services/a%2Fb%3Fc",
		route.AdminEntry(loom.KindService, ".."):                  "/admin/services/..~",
		route.AdminEntryEdit(loom.KindTemplate, "web"):            "/admin/templates/web/edit",
		route.AdminEntryDelete(loom.KindProvider, "local"):        "/admin/providers/local/delete",
		route.AdminEntryVersions(loom.KindPartialTemplate, "p"):   "/admin/partials/p/versions",
		route.AdminEntryVersion(loom.KindPartialTemplate, "p", 4): "/admin/partials/p/versions/4",
		route.AdminValidate(loom.KindService):                     "/validate/services",
		route.Clusters():                                          "/clusters",
		route.ClustersRows():                                      "/clusters/rows",
		route.ClusterNew():                                        "/clusters/new",
		route.ClusterNewFrom("web"):                               "/clusters/new?template=web",
		route.ClusterCheck():                                      "/clusters/new/check",
		route.Previews():                                          "/previews",
		route.Preview("ab-cd"):                                    "/previews/ab-cd",
		route.PreviewApply("ab-cd"):                               "/previews/ab-cd/apply",
		route.PreviewDiscard("ab-cd"):                             "/previews/ab-cd/discard",
		route.PreviewGraph("ab-cd"):                               "/previews/ab-cd/graph.svg",
		route.Cluster(42):                                         "/clusters/00000042",
		route.ClusterTab(42, "config"):                            "/clusters/00000042/config",
		route.ClusterPanel(42):                                    "/clusters/00000042/panel",
		route.ClusterNodes(42):                                    "/clusters/00000042/nodes",
		route.ClusterOperations(42):                               "/clusters/00000042/operations",
		route.ClusterDelete(42):                                   "/clusters/00000042/delete",
		route.ClusterLease(42):                                    "/clusters/00000042/lease",
		route.Node(42, "n-1"):                                     "/clusters/00000042/nodes/n-1",
		route.NodeReveal(42, "n-1"):                               "/clusters/00000042/nodes/n-1/reveal",
		route.Operation(op):                                       "/clusters/00000042/operations/3",
		route.OperationGraph(op):                                  "/clusters/00000042/operations/3/graph",
		route.OperationGraphSVG(op):                               "/clusters/00000042/operations/3/graph.svg",
		route.OperationTasks(op):                                  "/clusters/00000042/operations/3/table",
		route.OperationPanel(op):                                  "/clusters/00000042/operations/3/panel",
		route.OperationVerb(op, "pause"):                          "/clusters/00000042/operations/3/pause",
		route.Task(task):                                          "/clusters/00000042/operations/3/tasks/12",
		route.TaskAttempt(task, 2):                                "/clusters/00000042/operations/3/tasks/12?attempt=2",
		route.TaskLog(task, 2):                                    "/clusters/00000042/operations/3/tasks/12/log?attempt=2",
		route.TaskLogRaw(task, 2):                                 "/clusters/00000042/operations/3/tasks/12/log/raw?attempt=2",
		route.TaskPanel(task):                                     "/clusters/00000042/operations/3/tasks/12/panel",
		route.JSON(route.TaskAttempt(task, 2)):                    "/clusters/00000042/operations/3/tasks/12?attempt=2&as=json",
		route.TopicClusters():                                     "clusters",
		route.TopicCluster(42):                                    "cluster:00000042",
		route.TopicOperation(op):                                  "op:00000042/3",
		route.TopicLog(task, 2):                                   "log:00000042/3/12/2",
	}
	for got, want := range tests {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if _, err := url.Parse(got); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
}

// A name of any kind must come back from the path it was put into.
func FuzzEntryRoundTrip(f *testing.F) {
	for _, seed := range []string{"mysql", "..", ".", "..~", "a/b", "a b", "%2e%2e", "ü", "a?b#c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		u, err := url.Parse(route.AdminEntry(loom.KindService, name))
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		const head = "/admin/services/"
		if len(u.Path) < len(head) || u.Path[:len(head)] != head || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q left its place: %s", name, u)
		}
		segment := u.Path[len(head):]
		if name != ".~" && name != "..~" && route.Segment(segment) != name {
			t.Fatalf("%q came back as %q", name, route.Segment(segment))
		}
	})
}

func TestLocalKeepsPeopleHere(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("x", 2<<10-1)
	for next, want := range map[string]string{
		"/clusters?q=x":        "/clusters?q=x",
		"":                     "/",
		"clusters":             "/",
		"//evil.example":       "/",
		"/\\evil.example":      "/",
		"https://evil.example": "/",
		"/a\r\nSet-Cookie: x":  "/",
		"javascript:alert(1)":  "/",
		long:                   long,
		long + "x":             "/",
	} {
		if got := route.Local(next, "/"); got != want {
			t.Errorf("Local(%q) = %q, want %q", next, got, want)
		}
	}
}

// TestLoginForgetsLongPaths: a redirect to the sign-in page is short whatever was asked for.
func TestLoginForgetsLongPaths(t *testing.T) {
	t.Parallel()
	if got := route.Login("/" + strings.Repeat("x", 60<<10)); got != "/login" {
		t.Errorf("%d bytes", len(got))
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	if got := route.Query("/clusters", "q", "", "sort", "-created"); got != "/clusters?sort=-created" {
		t.Errorf("got %s", got)
	}
}

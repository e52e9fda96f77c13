package layout_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"golang.org/x/net/html"

	"loom/app/testkit/golden"
	"loom/views/layout"
	"loom/views/ui"
	"loom/views/ui/gallery"
)

func model() layout.Model {
	return layout.Model{
		Title: "shop-front", Section: "Clusters", TitlePrefix: "(49/81)", Theme: layout.ThemeDark, Path: "/clusters/00000042?x=1",
		User: "ana", Tenant: "demo", RoleWord: "Tenant admin", AdminHref: "/admin",
		Area: layout.AreaClusters, Here: "/clusters",
		Crumbs:  []ui.Crumb{{Label: "Clusters", Href: "/clusters"}, {Label: "shop-front"}},
		Banners: []ui.BannerModel{{Tone: ui.ToneWarn, Text: "The quota is reached."}},
		Flashes: []ui.ToastModel{{Tone: ui.ToneOK, Text: "Started."}},
		Topics:  []string{"cluster:00000042", "op:00000042/3"}, Cursor: "817",
		Refresh: 15, StopRefresh: "/clusters/00000042?refresh=off", Version: "0.1.0",
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	golden.HTML(t, map[string]templ.Component{
		"page":     layout.Wrap(model(), ui.Badge(ui.ClusterState("active"))),
		"fragment": layout.Fragment(model(), ui.Badge(ui.ClusterState("active"))),
		"bare": layout.WrapBare(layout.BareModel{Title: "Not found", Version: "0.1.0"},
			layout.ErrorPage(layout.ErrorModel{Headline: "There is no such page", Message: "Nothing is here.", Remedy: "Check the address.", Back: "Go to clusters", BackHref: "/clusters", RequestID: "01J9"})),
	})
}

func TestModelDefaults(t *testing.T) {
	t.Parallel()
	page := golden.Render(t, layout.Wrap(layout.Model{Title: "x", Theme: "pink"}, ui.Icon("x")))
	for want, why := range map[string]string{
		`<html lang="en" data-theme="system" `: "an unknown theme is the system's",
		`<title>x · Loom</title>`:              "an empty section leaves nothing behind",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: no %s", why, want)
		}
	}
	for _, unwanted := range []string{"data-events", "data-poll", "http-equiv", `id="live"`, `id="rail"`} {
		if strings.Contains(page, unwanted) {
			t.Errorf("a plain page has %s", unwanted)
		}
	}
	polling := model()
	polling.Polling = true
	page = golden.Render(t, layout.Wrap(polling, ui.Icon("x")))
	if !strings.Contains(page, "data-poll") || strings.Contains(page, "data-events") {
		t.Error("a page that polls must not open a stream")
	}
}

// The configuration of htmx must be JSON after unescaping, with the keys that the
// policy depends on.
func TestHTMXConfig(t *testing.T) {
	t.Parallel()
	document := parse(t, golden.Render(t, layout.Wrap(model(), ui.Icon("x"))))
	var config map[string]any
	walk(document, func(n *html.Node) {
		if n.Data == "meta" && attribute(n, "name") == "htmx-config" {
			if err := json.Unmarshal([]byte(attribute(n, "content")), &config); err != nil {
				t.Errorf("htmx-config: %v", err)
			}
		}
	})
	for key, want := range map[string]any{
		"allowEval": false, "allowScriptTags": false, "includeIndicatorStyles": false, "selfRequestsOnly": true, "historyCacheSize": 0.0,
		"refreshOnHistoryMiss": true, "historyRestoreAsHxRequest": false, "reportValidityOfForms": true,
	} {
		if got, ok := config[key]; !ok || got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if rules, _ := config["responseHandling"].([]any); len(rules) < 5 {
		t.Errorf("responseHandling is %v", config["responseHandling"])
	}
}

// Everything that points at an id must find it, once.
func TestReferencesAreWhole(t *testing.T) {
	t.Parallel()
	document := parse(t, golden.Render(t, layout.Wrap(model(), gallery.All())))
	ids := map[string]int{}
	walk(document, func(n *html.Node) {
		if id := attribute(n, "id"); id != "" {
			ids[id]++
		}
	})
	for id, count := range ids {
		if count > 1 {
			t.Errorf("id %q is used %d times", id, count)
		}
	}
	walk(document, func(n *html.Node) {
		for _, key := range []string{"for", "aria-describedby", "aria-labelledby", "aria-controls", "popovertarget", "data-goto", "data-copy-from"} {
			for _, id := range strings.Fields(attribute(n, key)) {
				// The dialog is empty until something opens in it.
				if ids[id] == 0 && id != "dialog-title" {
					t.Errorf("%s=%q of <%s> points nowhere", key, id, n.Data)
				}
			}
		}
		if n.Data == "button" && attribute(n, "type") == "" && attribute(n, "formmethod") == "" && n.Parent.Data != "form" {
			t.Errorf("a button without type: %v", n.Attr)
		}
	})
}

func parse(t *testing.T, text string) *html.Node {
	t.Helper()
	document, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func walk(n *html.Node, visit func(*html.Node)) {
	if n.Type == html.ElementNode {
		visit(n)
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		walk(child, visit)
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

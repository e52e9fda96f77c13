package testkit

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Button is a submit button as a browser without scripts sees it.
type Button struct {
	// Label is its text, or what it is called where it has none; Name and Value are what
	// it adds to the form.
	Label, Name, Value string
	// Method is GET or POST; Action is where the form goes, "" for the page itself.
	Method, Action string
	// Values are the form's, those of the button among them.
	Values url.Values
}

// Buttons lists the submit buttons of a page in their order, with what pressing each
// would send. Buttons that are disabled or stand in no form are left out.
func Buttons(t testing.TB, page string) []Button {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var out []Button
	walk(root, func(n *html.Node) {
		if b, ok := buttonOf(root, n); ok {
			out = append(out, b)
		}
	})
	return out
}

// Links lists the addresses of the links of a page, each once, in their order. Those
// of pictures count: people reach them with the keyboard as well.
func Links(t testing.TB, page string) []string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	seen := map[string]bool{}
	walk(root, func(n *html.Node) {
		to, has := attribute(n, "href")
		if n.Type == html.ElementNode && n.Data == "a" && has && !seen[to] {
			seen[to] = true
			out = append(out, to)
		}
	})
	return out
}

func buttonOf(root, n *html.Node) (Button, bool) {
	kind, typed := attribute(n, "type")
	_, disabled := attribute(n, "disabled")
	if n.Type != html.ElementNode || n.Data != "button" || typed && kind != "submit" || disabled {
		return Button{}, false
	}
	form := formOf(root, n)
	if form == nil {
		return Button{}, false
	}
	b := Button{Label: strings.Join(strings.Fields(allText(n)), " "), Method: "GET", Values: url.Values{}}
	if b.Label == "" {
		b.Label, _ = attribute(n, "aria-label")
	}
	b.Name, _ = attribute(n, "name")
	b.Value, _ = attribute(n, "value")
	b.Action, _ = attribute(form, "action")
	if to, has := attribute(n, "formaction"); has {
		b.Action = to
	}
	b.Action, _, _ = strings.Cut(b.Action, "#") // browsers keep it to themselves
	method, _ := attribute(form, "method")
	if m, has := attribute(n, "formmethod"); has {
		method = m
	}
	if strings.EqualFold(method, "post") {
		b.Method = "POST"
	}
	walk(root, func(c *html.Node) {
		if formOf(root, c) == form {
			collectControl(c, b.Values)
		}
	})
	if b.Name != "" {
		b.Values.Add(b.Name, b.Value)
	}
	return b, true
}

// formOf is the form that a control belongs to: the one it names, else the one around.
func formOf(root, n *html.Node) *html.Node {
	if id, has := attribute(n, "form"); has {
		return elementByID(root, id)
	}
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Type == html.ElementNode && p.Data == "form" {
			return p
		}
	}
	return nil
}

func walk(n *html.Node, visit func(*html.Node)) {
	visit(n)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		walk(c, visit)
	}
}

func allText(n *html.Node) string {
	var b strings.Builder
	walk(n, func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
	})
	return b.String()
}

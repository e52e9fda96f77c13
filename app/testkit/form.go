package testkit

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// FormValues returns what a browser would send for the form with an id in a page, or
// with "" for all controls of the page, when none of its buttons was pressed. Text
// is sent as browsers do: one line in fields of one line, CR LF in textareas.
func FormValues(t testing.TB, page, id string) url.Values {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	values, whole := url.Values{}, root
	if id != "" {
		if root = elementByID(root, id); root == nil {
			t.Fatalf("the page has no element %q", id)
		}
		collectAttached(whole, id, values)
	}
	collectControls(root, values)
	return values
}

// collectAttached adds the controls that say that they belong to the form with an id,
// wherever they are; those are not within it.
func collectAttached(n *html.Node, id string, values url.Values) {
	if form, _ := attribute(n, "form"); form == id {
		collectControl(n, values)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		collectAttached(c, id, values)
	}
}

func elementByID(n *html.Node, id string) *html.Node {
	if value, _ := attribute(n, "id"); n.Type == html.ElementNode && value == id {
		return n
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if found := elementByID(c, id); found != nil {
			return found
		}
	}
	return nil
}

func attribute(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func collectControls(n *html.Node, values url.Values) {
	collectControl(n, values)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		collectControls(c, values)
	}
}

// collectControl adds what a browser would send for one control.
func collectControl(n *html.Node, values url.Values) {
	name, _ := attribute(n, "name")
	_, disabled := attribute(n, "disabled")
	if n.Type == html.ElementNode && name != "" && !disabled {
		switch n.Data {
		case "input":
			collectInput(n, name, values)
		case "textarea":
			values.Add(name, strings.ReplaceAll(text(n), "\n", "\r\n"))
		case "select":
			values.Add(name, selected(n))
		}
	}
}

func collectInput(n *html.Node, name string, values url.Values) {
	kind, _ := attribute(n, "type")
	value, _ := attribute(n, "value")
	switch kind {
	case "submit", "button", "image", "reset", "file":
	case "checkbox", "radio":
		if _, checked := attribute(n, "checked"); checked {
			values.Add(name, value)
		}
	case "hidden":
		values.Add(name, strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n").Replace(value))
	default:
		values.Add(name, strings.NewReplacer("\n", "", "\r", "").Replace(value))
	}
}

func text(n *html.Node) string {
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// selected is the value of the chosen option, else of the first.
func selected(n *html.Node) string {
	first, chosen := "", ""
	seen, has := false, false
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode && n.Data == "option" {
			value, _ := attribute(n, "value")
			_, disabled := attribute(n, "disabled")
			if _, is := attribute(n, "selected"); is {
				chosen, has = value, true
			}
			if !seen && !disabled {
				first, seen = value, true
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(n)
	if has {
		return chosen
	}
	return first
}

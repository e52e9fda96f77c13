package page

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/views/route"
)

// exampleFields are the members of a document that bodies of calls name. Of a list it
// is the first entry. Clusters and templates have some more: what a call could ask for.
func exampleFields(d Document, body []byte) map[string]any {
	if d.List {
		var items []map[string]any
		if json.Unmarshal(body, &items) != nil || len(items) == 0 {
			return nil
		}
		askOfTemplate(items[0])
		return items[0]
	}
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		return nil // not every document is an object
	}
	switch d.Path {
	case ClusterDocument:
		askOfCluster(fields)
	case TemplateDocument:
		askOfTemplate(fields)
	}
	return fields
}

// askOfTemplate puts beside the members of a template a number of nodes that it allows.
func askOfTemplate(fields map[string]any) {
	size := memberOf(memberOf(fields, "constraints"), "size")
	fields["size"] = 3.0
	if least, ok := size["min"].(float64); ok && least > 3 {
		fields["size"] = least
	}
	if most, ok := size["max"].(float64); ok && most >= 1 && most < 3 {
		fields["size"] = most
	}
}

// ofPath puts parts of the page's path into the body of a call.
func ofPath(body string, r *http.Request) string {
	for _, name := range []string{"n", "service"} {
		if at := "{" + name + "}"; strings.Contains(body, at) {
			body = strings.ReplaceAll(body, at, strings.Trim(CompactJSON(route.Segment(r.PathValue(name))), `"`))
		}
	}
	return body
}

// askOfCluster puts beside the members of a cluster how many nodes one more is, the
// nodes to make anew, and services and hardware that could be asked for.
func askOfCluster(fields map[string]any) {
	nodes, _ := fields["nodes"].([]any)
	fields["more"] = len(nodes) + 1
	has := wordsOf(fields["services"])
	fields["present"] = has[:min(1, len(has))]
	compatible := memberOf(memberOf(fields, "clusterTemplate"), "compatibility")
	fields["absent"] = fields["present"]
	for _, name := range wordsOf(compatible["services"]) {
		if !slices.Contains(has, name) {
			fields["absent"] = []string{name}
			break
		}
	}
	if len(nodes) == 0 {
		return
	}
	first, _ := nodes[0].(map[string]any)
	fields["broken"] = []any{first["id"]}
	var broken []any
	for _, n := range nodes {
		if n, _ := n.(map[string]any); n["state"] != string(loom.NodeReady) {
			broken = append(broken, n["id"])
		}
	}
	if len(broken) > 0 {
		fields["broken"] = broken
	}
	fields["hardware"] = memberOf(first, "properties")["hardwaretype"]
	for _, name := range wordsOf(compatible["hardwaretypes"]) {
		if name != fields["hardware"] {
			fields["hardware"] = name
			break
		}
	}
}

func memberOf(fields map[string]any, name string) map[string]any {
	member, _ := fields[name].(map[string]any)
	return member
}

func wordsOf(v any) []string {
	var words []string
	list, _ := v.([]any)
	for _, item := range list {
		if word, ok := item.(string); ok {
			words = append(words, word)
		}
	}
	return words
}

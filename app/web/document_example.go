package web

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/views/route"
)

// exampleFields are the members of a document that bodies of calls name. Of a list it
// is the first entry. Clusters and templates have some more: what a call could ask for.
func exampleFields(d document, body []byte) map[string]any {
	if d.list {
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
	switch d.path {
	case clusterDocument:
		askOfCluster(fields)
	case templateDocument:
		askOfTemplate(fields)
	}
	return fields
}

// newClusterDraft puts beside the members of a template the request for a new cluster.
func (s *Server) newClusterDraft(r *http.Request, actor loom.Actor, fields map[string]any) map[string]any {
	if len(fields) > 0 {
		fields["draft"] = s.draftBody(r, actor, fields)
	}
	return fields
}

// draftBody is the request for a new cluster as its form stands: the draft of whoever
// asks, or the least that a template wants.
func (s *Server) draftBody(r *http.Request, actor loom.Actor, template map[string]any) map[string]any {
	f, at := s.restoreCreateDraft(r, actor)
	if at.IsZero() || f.Template == "" {
		return map[string]any{"name": "web-1", "clusterTemplate": template["name"], "numMachines": template["size"]}
	}
	in, _ := f.input(nil) // what cannot be read is left out
	body := map[string]any{"name": in.Name, "clusterTemplate": in.Template, "numMachines": in.Machines}
	for name, value := range map[string]string{"description": in.Description, "provider": in.Provider, "hardwaretype": in.HardwareType, "imagetype": in.ImageType, "dnsSuffix": in.DNSSuffix, "onFailure": in.OnFailure} {
		if value != "" {
			body[name] = value
		}
	}
	if in.LeaseMillis >= 0 {
		body["initialLeaseDuration"] = in.LeaseMillis
	}
	for name, value := range map[string]any{"services": in.Services, "labels": in.Labels, "config": masked(in.Config), "providerFields": in.ProviderFields} {
		if reflect.ValueOf(value).Len() > 0 {
			body[name] = value
		}
	}
	return body
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
			body = strings.ReplaceAll(body, at, strings.Trim(compact(route.Segment(r.PathValue(name))), `"`))
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

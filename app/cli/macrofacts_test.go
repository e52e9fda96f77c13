//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loom/app/api/wire"
	"loom/app/loom"
)

// macroFacts works macros out in the plainest way there is, from what the REST API
// says of a cluster: a second opinion on planner/macro, with none of its code.
type macroFacts struct {
	cluster wire.Cluster
	self    wire.Node
}

var (
	macroForm = regexp.MustCompile(`%%|%((?:[^%'"]|'[^']*'|"[^"]*")+)%`)
	joinForm  = regexp.MustCompile(`^join\((.*?) *, *['"]([^'"]*)['"]\)$`)
	mapForm   = regexp.MustCompile(`^map\((.*?) *, *['"]([^'"]*)['"]\)$`)
)

// walk returns a copy of a value with the macros of its texts worked out. each is told
// of every text before and after.
func (m macroFacts) walk(value any, each func(before, after string)) any {
	switch v := value.(type) {
	case string:
		after := m.expand(v)
		each(v, after)
		return after
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			out[name] = m.walk(inner, each)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			out = append(out, m.walk(inner, each))
		}
		return out
	}
	return value
}

// expand works a text out. Two percent signs are one, but only beside a macro.
func (m macroFacts) expand(text string) string {
	if !slices.ContainsFunc(macroForm.FindAllString(text, -1), func(found string) bool { return found != "%%" }) {
		return text
	}
	return macroForm.ReplaceAllStringFunc(text, func(found string) string {
		if found == "%%" {
			return "%"
		}
		if value, ok := m.macro(found[1 : len(found)-1]); ok {
			return value
		}
		return found
	})
}

// macro works one expression out; false leaves it as it stands.
func (m macroFacts) macro(expression string) (string, bool) {
	separator, format := ",", "$"
	if f := joinForm.FindStringSubmatch(expression); f != nil {
		expression, separator = f[1], f[2]
	}
	if f := mapForm.FindStringSubmatch(expression); f != nil {
		expression, format = f[1], f[2]
	}
	values, ok := m.values(expression)
	if !ok {
		return "", false
	}
	for i, value := range values {
		const dollar = "\x00"
		filled := strings.ReplaceAll(strings.ReplaceAll(format, "$$", dollar), "$", value)
		values[i] = strings.ReplaceAll(filled, dollar, "$")
	}
	return strings.Join(values, separator), true
}

// values returns what a name stands for.
func (m macroFacts) values(name string) ([]string, bool) {
	if name == "cluster.owner" {
		return []string{string(m.cluster.Account.User)}, true
	}
	index := -1
	if open := strings.IndexByte(name, '['); open > 0 {
		index, _ = strconv.Atoi(strings.TrimSuffix(name[open+1:], "]")) //nolint:errcheck // the catalog has numbers there
		name = name[:open]
	}
	kind, rest, _ := strings.Cut(name, ".")
	if service, ok := strings.CutPrefix(name, "instance.self.service."); ok {
		position := slices.IndexFunc(m.with(service), func(n wire.Node) bool { return n.ID == m.self.ID })
		return []string{strconv.Itoa(position + 1)}, position >= 0
	}
	address := loom.BindV4
	if first, more, ok := strings.Cut(rest, "."); kind == "ip" && ok && first != "service" {
		address, rest = first, more
	}
	of := func(n wire.Node) string {
		if kind == "ip" {
			return n.Properties.Addresses[address]
		}
		return n.Properties.Hostname
	}
	if rest == "self" {
		return []string{of(m.self)}, true
	}
	service, ok := strings.CutPrefix(rest, "service.")
	if !ok {
		panic("no macro: " + name)
	}
	nodes := m.with(service)
	if kind == "num" {
		return []string{strconv.Itoa(len(nodes))}, true
	}
	var values []string
	for _, n := range nodes {
		values = append(values, of(n))
	}
	if index >= 0 && len(values) > 0 {
		values = values[index : index+1]
	}
	return values, len(values) > 0
}

// with returns the nodes of a service by number.
func (m macroFacts) with(service string) (nodes []wire.Node) {
	for _, n := range m.cluster.Nodes {
		if slices.ContainsFunc(n.Services, func(s loom.Service) bool { return s.Name == service }) {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b wire.Node) int { return a.Properties.Number - b.Properties.Number })
	return nodes
}

func asObject(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}

// laid returns an object with another one laid over it: objects are united, lists
// too, anything else of the upper one wins.
func laid(under, over map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range under {
		out[name] = value
	}
	for name, value := range over {
		switch v := value.(type) {
		case map[string]any:
			value = laid(asObject(out[name]), v)
		case []any:
			list, _ := out[name].([]any)
			list = slices.Clone(list)
			for _, item := range v {
				if !slices.ContainsFunc(list, func(other any) bool { return fmt.Sprint(other) == fmt.Sprint(item) }) {
					list = append(list, item)
				}
			}
			value = list
		}
		out[name] = value
	}
	return out
}

// differ compares two values as JSON.
func differ(a, b any) bool {
	first, errA := json.Marshal(a)
	second, errB := json.Marshal(b)
	return errA != nil || errB != nil || string(first) != string(second)
}

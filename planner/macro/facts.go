package macro

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"loom/app/loom"
)

// Facts is a snapshot of a cluster that macros are filled from. Make one per
// revision of the cluster and share it: what does not depend on the asking node
// is worked out once. It is safe for use by several goroutines.
type Facts struct {
	owner string
	// nodes by number.
	nodes []member
	at    map[loom.NodeID]int
	// services holds for each service the positions in nodes, ascending.
	services map[string][]int

	mu     sync.Mutex
	parsed map[string]parsed
	// shared holds the values of macros that do not depend on a node, by their text.
	shared map[string]result
}

type member struct {
	number    int
	id        loom.NodeID
	hostname  string
	addresses map[string]string
}

type parsed struct {
	template Template
	problems []Problem
}

// result is a value, or why there is none.
type result struct {
	value    string
	severity Severity
	reason   string
}

func failed(severity Severity, format string, args ...any) result {
	return result{severity: severity, reason: fmt.Sprintf(format, args...)}
}

// NewFacts takes a snapshot. Owner is the user id of the cluster's owner; nodes
// are all nodes of the cluster and must not change afterwards.
func NewFacts(owner string, nodes map[loom.NodeID]loom.NodeProperties) *Facts {
	f := &Facts{
		owner: owner, at: make(map[loom.NodeID]int, len(nodes)), services: map[string][]int{},
		parsed: map[string]parsed{}, shared: map[string]result{},
	}
	for id, n := range nodes {
		f.nodes = append(f.nodes, member{n.Number, id, n.Hostname, n.Addresses})
	}
	slices.SortFunc(f.nodes, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.id, b.id))
	})
	for i, n := range f.nodes {
		f.at[n.id] = i
		for _, s := range nodes[n.id].Services {
			if list := f.services[s]; len(list) == 0 || list[len(list)-1] != i {
				f.services[s] = append(list, i)
			}
		}
	}
	return f
}

// parse is the package's parse, remembered for the snapshot.
func (f *Facts) parse(text string) (Template, []Problem) {
	if !strings.Contains(text, "%") {
		return Template{}, nil
	}
	f.mu.Lock()
	p, ok := f.parsed[text]
	f.mu.Unlock()
	if !ok {
		p.template, p.problems = parse(text)
		f.mu.Lock()
		f.parsed[text] = p
		f.mu.Unlock()
	}
	return p.template, p.problems
}

// value gives the value of a macro for a node.
func (f *Facts) value(s segment, self loom.NodeID) result {
	if s.expr.ref.ofSelf() {
		return f.evaluate(s.expr, self, true)
	}
	f.mu.Lock()
	r, ok := f.shared[s.text]
	f.mu.Unlock()
	if !ok {
		r = f.evaluate(s.expr, self, true)
		f.mu.Lock()
		f.shared[s.text] = r
		f.mu.Unlock()
	}
	return r
}

// evaluate works a macro out. With addresses false, addresses that are not
// known yet are no failure, for checks before machines exist.
func (f *Facts) evaluate(e *expr, self loom.NodeID, addresses bool) result {
	elements, failure := f.elements(e.ref, self, addresses)
	if failure.severity != "" {
		return failure
	}
	separator := ","
	if e.join {
		separator = e.separator
	}
	var out []byte
	for i, element := range elements {
		if i > 0 {
			out = append(out, separator...)
		}
		out = appendElement(out, e.format, element)
		if len(out) > MaxExpansion {
			return failed(Limit, "the expansion is longer than %d bytes", MaxExpansion)
		}
	}
	return result{value: string(out)}
}

// appendElement writes an element, by the format of map if there is one: "$"
// stands for the element and "$$" for one dollar sign.
func appendElement(out []byte, format *string, element string) []byte {
	if format == nil {
		return append(out, element...)
	}
	for i := 0; i < len(*format) && len(out) <= MaxExpansion; i++ {
		switch c := (*format)[i]; {
		case c != '$':
			out = append(out, c)
		case i+1 < len(*format) && (*format)[i+1] == '$':
			out = append(out, '$')
			i++
		default:
			out = append(out, element...)
		}
	}
	return out
}

// elements gives the values a reference stands for; result says why there are none.
func (f *Facts) elements(r ref, self loom.NodeID, addresses bool) ([]string, result) {
	switch r.what {
	case owner:
		return []string{f.owner}, result{}
	case countOf:
		return []string{fmt.Sprint(len(f.services[r.service]))}, result{}
	case hostsOf, addressesOf:
		return f.list(r, addresses)
	case hostOfSelf, addressOfSelf, instanceOf:
		return f.ofSelf(r, self, addresses)
	}
	return nil, failed(Syntax, "the macro has no meaning")
}

func (f *Facts) list(r ref, addresses bool) ([]string, result) {
	members := f.services[r.service]
	if len(members) == 0 {
		return nil, failed(Absent, "the cluster has no service “%s”, so the text stays as it is%s", r.service, f.near(r.service))
	}
	if r.index != noIndex {
		if r.index >= len(members) {
			return nil, failed(Unresolved, "there is no index %d: %d of the cluster's nodes have the service “%s”, counted from 0", r.index, len(members), r.service)
		}
		members = members[r.index : r.index+1]
	}
	elements := make([]string, 0, len(members))
	for _, i := range members {
		value, failure := f.nodes[i].fact(r, addresses)
		if failure.severity != "" {
			return nil, failure
		}
		elements = append(elements, value)
	}
	return elements, result{}
}

func (f *Facts) ofSelf(r ref, self loom.NodeID, addresses bool) ([]string, result) {
	if self == "" {
		return nil, failed(Unresolved, "no node is meant here that “self” could stand for")
	}
	i, ok := f.at[self]
	if !ok {
		return nil, failed(Unresolved, "the cluster has no node %s", self)
	}
	position := -1
	if r.service != "" {
		if at, found := slices.BinarySearch(f.services[r.service], i); found {
			position = at
		}
	}
	if r.what == instanceOf {
		if position < 0 {
			return nil, failed(Absent, "node %d does not have the service “%s”, so the text stays as it is", f.nodes[i].number, r.service)
		}
		return []string{fmt.Sprint(position + 1)}, result{}
	}
	if r.service != "" && position < 0 {
		return nil, failed(Unresolved, "node %d does not have the service “%s”", f.nodes[i].number, r.service)
	}
	value, failure := f.nodes[i].fact(r, addresses)
	if failure.severity != "" {
		return nil, failure
	}
	return []string{value}, result{}
}

// fact gives the host name or the address of a node.
func (m *member) fact(r ref, addresses bool) (string, result) {
	if r.what == hostsOf || r.what == hostOfSelf {
		if m.hostname == "" {
			return "", failed(Unresolved, "node %d has no host name", m.number)
		}
		return m.hostname, result{}
	}
	value := m.addresses[r.address]
	if value == "" && addresses {
		return "", failed(Unresolved, "node %d has no address of type “%s”", m.number, r.address)
	}
	return value, result{}
}

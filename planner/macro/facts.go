package macro

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	// types are the types of address that any node has.
	types map[string]bool

	// collected counts the nodes looked at for lists.
	collected atomic.Int64

	mu     sync.Mutex
	parsed map[string]parsed
	// lists holds what the references to many nodes stand for.
	lists map[listKey]list
	// nearest holds the names proposed for services that are absent.
	nearest map[string]string
	// shared holds the values of macros that do not depend on a node, by their text.
	shared map[string]result
	// last is the newest expansion that does not depend on a node.
	last shared
}

type member struct {
	number    int
	id        loom.NodeID
	hostname  string
	addresses map[string]string
}

// listKey is a reference without index; addresses as for evaluate.
type listKey struct {
	ref       ref
	addresses bool
}

// list is what a reference stands for, or why there is nothing.
type list struct {
	// elements are not filled where only their number and length matter.
	elements []string
	count    int
	// bytes is the length of all elements.
	bytes   int
	failure result
}

func listOf(elements ...string) list {
	l := list{elements: elements, count: len(elements)}
	for _, e := range elements {
		l.bytes += len(e)
	}
	return l
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
		types: map[string]bool{}, parsed: map[string]parsed{}, lists: map[listKey]list{}, nearest: map[string]string{}, shared: map[string]result{},
	}
	for id, n := range nodes {
		f.nodes = append(f.nodes, member{n.Number, id, n.Hostname, n.Addresses})
	}
	slices.SortFunc(f.nodes, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.id, b.id))
	})
	for i, n := range f.nodes {
		f.at[n.id] = i
		for kind := range n.addresses {
			f.types[kind] = true
		}
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

// value gives the value of a macro for a node, if it is not longer than room. What is
// too long is not made.
func (f *Facts) value(s segment, self loom.NodeID, room int) result {
	size, r := f.measure(s.expr, self, true)
	if r.severity != "" {
		return r
	}
	if size > room {
		return failed(Limit, "with this macro the expansion is longer than %d bytes", MaxExpansion)
	}
	if s.expr.ref.ofSelf() {
		return f.evaluate(s.expr, self, size)
	}
	f.mu.Lock()
	r, ok := f.shared[s.text]
	f.mu.Unlock()
	if !ok {
		r = f.evaluate(s.expr, self, size)
		f.mu.Lock()
		f.shared[s.text] = r
		f.mu.Unlock()
	}
	return r
}

// measure gives the length of a macro's value without making it, or a result that says why
// there is none. With addresses false, addresses that are not known yet are no failure,
// for checks before machines exist.
func (f *Facts) measure(e *expr, self loom.NodeID, addresses bool) (int, result) {
	l := f.elements(e.ref, self, addresses)
	if l.failure.severity != "" {
		return 0, l.failure
	}
	size := l.bytes
	if e.format != nil {
		plain, times := measureFormat(*e.format)
		size = plain*l.count + times*l.bytes
	}
	size += len(e.between()) * max(l.count-1, 0)
	if size > MaxExpansion {
		return 0, failed(Limit, "the expansion is longer than %d bytes", MaxExpansion)
	}
	return size, result{}
}

// evaluate makes the value of a macro that measure gave a size for.
func (f *Facts) evaluate(e *expr, self loom.NodeID, size int) result {
	if size == 0 {
		return result{}
	}
	l := f.elements(e.ref, self, true)
	separator := e.between()
	out := make([]byte, 0, size)
	for i, element := range l.elements {
		if i > 0 {
			out = append(out, separator...)
		}
		out = appendElement(out, e.format, element)
	}
	return result{value: string(out)}
}

// between is what stands between two elements.
func (e *expr) between() string {
	if e.join {
		return e.separator
	}
	return ","
}

// measureFormat gives how many bytes a format adds to an element that it holds a
// number of times.
func measureFormat(format string) (plain, times int) {
	for i := 0; i < len(format); i++ {
		switch {
		case format[i] != '$':
			plain++
		case i+1 < len(format) && format[i+1] == '$':
			plain++
			i++
		default:
			times++
		}
	}
	return plain, times
}

// appendElement writes an element, by the format of map if there is one: "$"
// stands for the element and "$$" for one dollar sign.
func appendElement(out []byte, format *string, element string) []byte {
	if format == nil {
		return append(out, element...)
	}
	for i := 0; i < len(*format); i++ {
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

// elements gives the values a reference stands for. Addresses that are missing
// are empty with addresses false.
func (f *Facts) elements(r ref, self loom.NodeID, addresses bool) list {
	switch r.what {
	case owner:
		return listOf(f.owner)
	case countOf:
		return listOf(fmt.Sprint(len(f.services[r.service])))
	case hostsOf, addressesOf:
		return f.list(r, addresses)
	case hostOfSelf, addressOfSelf, instanceOf:
		return f.ofSelf(r, self, addresses)
	}
	return list{failure: failed(Syntax, "the macro has no meaning")}
}

// list gives the facts of the nodes that have a service.
func (f *Facts) list(r ref, addresses bool) list {
	members := f.services[r.service]
	if len(members) == 0 {
		return list{failure: failed(Absent, "the cluster has no service “%s”, so the text stays unchanged%s", r.service, f.near(r.service))}
	}
	if r.index != noIndex {
		if r.index >= len(members) {
			return list{failure: failed(Unresolved, "there is no index %d: %d of the cluster's nodes have the service “%s”, counted from 0", r.index, len(members), r.service)}
		}
		return f.collect(members[r.index:r.index+1], r, addresses)
	}
	if !addresses && r.what == addressesOf && !f.types[r.address] {
		return list{count: len(members)} // no node has one
	}
	key := listKey{r, addresses}
	f.mu.Lock()
	l, ok := f.lists[key]
	f.mu.Unlock()
	if !ok {
		l = f.collect(members, r, addresses)
		f.mu.Lock()
		f.lists[key] = l
		f.mu.Unlock()
	}
	return l
}

func (f *Facts) collect(members []int, r ref, addresses bool) list {
	f.collected.Add(int64(len(members)))
	elements := make([]string, 0, len(members))
	for _, i := range members {
		value, failure := f.nodes[i].fact(r, addresses)
		if failure.severity != "" {
			return list{failure: failure}
		}
		elements = append(elements, value)
	}
	return listOf(elements...)
}

func (f *Facts) ofSelf(r ref, self loom.NodeID, addresses bool) list {
	if self == "" {
		return list{failure: failed(Unresolved, "no node is meant here that “self” could stand for")}
	}
	i, ok := f.at[self]
	if !ok {
		return list{failure: failed(Unresolved, "the cluster has no node %s", self)}
	}
	position := -1
	if r.service != "" {
		if at, found := slices.BinarySearch(f.services[r.service], i); found {
			position = at
		}
	}
	if r.what == instanceOf {
		if position < 0 {
			return list{failure: failed(Absent, "node %d does not have the service “%s”, so the text stays unchanged", f.nodes[i].number, r.service)}
		}
		return listOf(fmt.Sprint(position + 1))
	}
	if r.service != "" && position < 0 {
		return list{failure: failed(Unresolved, "node %d does not have the service “%s”", f.nodes[i].number, r.service)}
	}
	value, failure := f.nodes[i].fact(r, addresses)
	if failure.severity != "" {
		return list{failure: failure}
	}
	return listOf(value)
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

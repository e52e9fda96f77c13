package macro

import (
	"fmt"
	"strings"

	"loom/app/loom"
)

// what a macro stands for.
type what int

const (
	owner what = iota
	hostOfSelf
	addressOfSelf
	hostsOf
	addressesOf
	countOf
	instanceOf
)

// noIndex marks a reference to a whole list.
const noIndex = -1

// ref is a resolved name of a macro.
type ref struct {
	what    what
	service string
	// address is the type of address.
	address string
	index   int
}

// ofSelf reports whether the value depends on the node that asks.
func (r ref) ofSelf() bool {
	return r.what == hostOfSelf || r.what == addressOfSelf || r.what == instanceOf
}

// resolve finds what a name means. The forms "host.self.service.S" and
// "ip.self.service.S" of old documents mean host.self and ip.self of a node
// that must have S.
func resolve(name string) (ref, error) {
	head, rest, _ := strings.Cut(name, ".")
	r := ref{index: noIndex}
	switch head {
	case "cluster":
		if rest == "owner" {
			r.what = owner
			return r, nil
		}
	case "host":
		if rest == "self" {
			r.what = hostOfSelf
			return r, nil
		}
		if s, ok := strings.CutPrefix(rest, "self.service."); ok {
			r.what, r.service = hostOfSelf, s
			return r.named(name)
		}
		if s, ok := strings.CutPrefix(rest, "service."); ok {
			r.what, r.service = hostsOf, s
			return r.named(name)
		}
	case "ip":
		return resolveAddress(name, rest)
	case "num":
		if s, ok := strings.CutPrefix(rest, "service."); ok {
			r.what, r.service = countOf, s
			return r.named(name)
		}
	case "instance":
		if s, ok := strings.CutPrefix(rest, "self.service."); ok {
			r.what, r.service = instanceOf, s
			return r.named(name)
		}
	}
	return ref{}, unknown(name)
}

// resolveAddress splits what follows "ip." at two dots at most, so a service
// whose name has dots needs its type of address written out.
func resolveAddress(name, rest string) (ref, error) {
	r := ref{what: addressOfSelf, address: loom.BindV4, index: noIndex}
	parts := strings.SplitN(rest, ".", 3)
	switch {
	case rest == "self":
		return r, nil
	case len(parts) == 2 && parts[0] == "service":
		r.what, r.service = addressesOf, parts[1]
		return r.named(name)
	case len(parts) == 2 && parts[1] == "self" && parts[0] != "":
		r.address = parts[0]
		return r, nil
	case len(parts) == 3 && parts[1] == "service" && parts[0] == "self":
		r.service = parts[2]
		return r.named(name)
	case len(parts) == 3 && parts[1] == "service" && parts[0] != "":
		r.what, r.address, r.service = addressesOf, parts[0], parts[2]
		return r.named(name)
	}
	return ref{}, unknown(name)
}

func (r ref) named(name string) (ref, error) {
	if r.service == "" {
		return ref{}, fmt.Errorf("“%s” lacks the name of a service", name)
	}
	return r, nil
}

// unknownName is a name that no macro has.
type unknownName struct{ name string }

func unknown(name string) error { return &unknownName{name} }

func (e *unknownName) Error() string {
	text := fmt.Sprintf("“%s” is not a valid macro name", e.name)
	if near := nearestMacro(e.name); near != "" {
		return text + fmt.Sprintf("; did you mean “%s”?", near)
	}
	return text + "; there are cluster.owner, host.self, ip.self, host.service.S, ip.service.S, num.service.S, instance.self.service.S and ip.T… for an address type T"
}

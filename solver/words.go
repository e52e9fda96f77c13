package solver

import (
	"fmt"
	"slices"
	"strings"

	"loom/app/loom"
)

// words puts a minimal clash into sentences.
type words struct {
	p, q      Problem // the whole, and with the clashing rules alone
	keep      []rule
	low, high int64   // the range of the whole
	s         *search // over q
}

func (w *words) unsat() *loom.Unsat {
	u := &loom.Unsat{Code: CodeUnsat}
	for _, r := range w.keep {
		u.Reasons = append(u.Reasons, w.reason(r))
	}
	switch {
	case w.low > w.high:
		u.Headline = fmt.Sprintf("No layout for any number of nodes: %s.", w.contradiction())
	case int64(w.p.Machines) < w.low:
		u.Headline = fmt.Sprintf("No layout for %s: at least %d are needed.", count(w.p.Machines, "node"), w.low)
		u.Reasons = append(u.Reasons, w.tooFew())
	default:
		u.Headline = fmt.Sprintf("No layout for %s: %s can be given a service.", count(w.p.Machines, "node"), atMost(w.high, "node"))
		u.Reasons = append(u.Reasons, loom.Reason{Code: CodeUnsat, ID: "M",
			Message: fmt.Sprintf("%s asked for, but %s can be given a service.", are(w.p.Machines, "node"), atMost(min(w.s.m.room(w.s.m.most), loom.Unlimited), "node"))})
	}
	return u
}

func (w *words) reason(r rule) loom.Reason {
	var id, text string
	switch r.kind {
	case mustRule:
		set := w.p.Must[r.at]
		id = fmt.Sprintf("must#%d", set.Index)
		text = fmt.Sprintf("%s must share every node they are on (template, must-coexist set %d).", list(set.Services), set.Index+1)
	case cantRule:
		set := w.p.Cant[r.at]
		id = fmt.Sprintf("cant#%d", set.Index)
		switch len(set.Services) {
		case 1:
			text = fmt.Sprintf("%s is forbidden on every node (template, can't-coexist set %d, which names it alone).", set.Services[0], set.Index+1)
		case 2:
			text = fmt.Sprintf("%s can't share a node (template, can't-coexist set %d).", list(set.Services), set.Index+1)
		default:
			text = fmt.Sprintf("%s can't all be on one node (template, can't-coexist set %d).", list(set.Services), set.Index+1)
		}
	case hardwareRule:
		s := w.p.Services[r.at]
		id = "hardware(" + s.Name + ")"
		text = w.onlyOn(s.Name, "hardware type", s.HardwareTypes, w.p.HardwareTypes)
	case imageRule:
		s := w.p.Services[r.at]
		id = "image(" + s.Name + ")"
		text = w.onlyOn(s.Name, "image type", s.ImageTypes, w.p.ImageTypes)
	case compatHardwareRule:
		id = "compat.hardwaretypes"
		text = fmt.Sprintf("The template allows no other hardware type than %s, and a node has another.", choice(w.p.OnlyHardware))
	case compatImageRule:
		id = "compat.imagetypes"
		text = fmt.Sprintf("The template allows no other image type than %s, and a node has another.", choice(w.p.OnlyImages))
	case minRule:
		s := w.p.Services[r.at]
		id = "quantity(" + s.Name + ").min"
		text = fmt.Sprintf("%s must be on at least %s (template, quantities).", s.Name, count(s.Min, "node"))
	case maxRule:
		s := w.p.Services[r.at]
		id = "quantity(" + s.Name + ").max"
		text = fmt.Sprintf("%s may be on %s (template, quantities).", s.Name, atMost(int64(s.Max), "node"))
	}
	return loom.Reason{Code: CodeUnsat, ID: id, Message: text}
}

// onlyOn words a limit on types and says what the cluster may use if that leaves
// nothing.
func (w *words) onlyOn(service, word string, limit, usable []string) string {
	text := fmt.Sprintf("%s may only run on %s %s (template, service limits)", service, word, choice(limit))
	if len(w.p.Nodes) == 0 && !slices.ContainsFunc(limit, func(t string) bool { return slices.Contains(usable, t) }) {
		text += fmt.Sprintf(", but this cluster can only use %s", choice(usable))
	}
	return text + "."
}

// tooFew names the groups of services that can share no node.
func (w *words) tooFew() loom.Reason {
	need := w.s.least(w.s.m.demand)
	if w.s.err != nil {
		return loom.Reason{}
	}
	text := fmt.Sprintf("%s asked for, but at least %d are needed", are(w.p.Machines, "node"), need)
	d := w.s.m.demand
	if set, sum := w.s.m.findClique(d, upTo(len(d)), 0); sum == need && set.count() > 1 && set.count() <= 6 {
		var parts []string
		for !set.empty() {
			g := set.pop()
			parts = append(parts, fmt.Sprintf("%s on %d", strings.Join(w.s.m.groups[g].members, " with "), d[g]))
		}
		text += ": " + list(parts) + " can never share a node"
	}
	return loom.Reason{Code: CodeUnsat, ID: "M", Message: text + "."}
}

// contradiction sums up rules that no number of machines satisfies.
func (w *words) contradiction() string {
	var hardware, image, quantity, cant []string
	for _, r := range w.keep {
		switch r.kind {
		case hardwareRule:
			hardware = append(hardware, w.p.Services[r.at].Name)
		case imageRule:
			image = append(image, w.p.Services[r.at].Name)
		case minRule, maxRule:
			quantity = append(quantity, w.p.Services[r.at].Name)
		case cantRule:
			cant = w.p.Cant[r.at].Services
		case mustRule, compatHardwareRule, compatImageRule:
		}
	}
	switch {
	case len(hardware) == 1:
		return fmt.Sprintf("no hardware type is allowed for %s", hardware[0])
	case len(hardware) == 2:
		return fmt.Sprintf("no hardware type is allowed for both %s", list(hardware))
	case len(hardware) > 2:
		return fmt.Sprintf("no hardware type is allowed for all of %s", list(hardware))
	case len(image) == 1:
		return fmt.Sprintf("no image type is allowed for %s", image[0])
	case len(image) == 2:
		return fmt.Sprintf("no image type is allowed for both %s", list(image))
	case len(image) > 2:
		return fmt.Sprintf("no image type is allowed for all of %s", list(image))
	case len(cant) == 1:
		return fmt.Sprintf("%s is allowed on no node", cant[0])
	case len(cant) > 1:
		return fmt.Sprintf("%s must share a node and can't", list(cant))
	case len(quantity) == 1:
		return fmt.Sprintf("%s was asked for and may be on no node", quantity[0])
	case len(quantity) > 1:
		return fmt.Sprintf("the numbers of nodes for %s contradict each other", list(quantity))
	}
	return "these rules contradict each other"
}

// outOfSize is the answer to a number of machines that the template, or the
// server, does not allow at all.
func (p Problem) outOfSize(sizes *loom.SizeRange) *loom.Unsat {
	return &loom.Unsat{Code: CodeSize, Headline: fmt.Sprintf("No layout for %s.", count(p.Machines, "node")),
		Reasons: sizeReasons(p.Machines, p.Size), Sizes: sizes}
}

// sizeReasons says what is wrong with a number of machines: nothing inside the size.
func sizeReasons(machines int, size loom.SizeRange) []loom.Reason {
	r := loom.Reason{Code: CodeSize, ID: "size.min"}
	switch {
	case machines < size.Min:
		r.Message = fmt.Sprintf("The template wants at least %s; %s asked for.", count(size.Min, "node"), are(machines, "node"))
	case machines > size.Max:
		r.ID, r.Message = "size.max", fmt.Sprintf("%s allowed (template size and server limit); %s asked for.", capital(atMost(int64(size.Max), "node"))+isAre(size.Max), are(machines, "node"))
	default:
		return nil
	}
	return []loom.Reason{r}
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func atMost(n int64, word string) string {
	if n == 0 {
		return "no " + word
	}
	return "at most " + count(int(n), word)
}

func isAre(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

func are(n int, word string) string { return count(n, word) + isAre(n) }

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// list joins names with commas and a final "and".
func list(names []string) string { return loom.And(names) }

// listed is list for names of which there may be many.
func listed(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		names = append(slices.Clone(names[:maxListed]), fmt.Sprintf("%d more", more))
	}
	return list(names)
}

// choice joins names with commas and a final "or", and stops after a few.
func choice(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if len(names) > 5 {
		return fmt.Sprintf("%s or %d others", strings.Join(names[:4], ", "), len(names)-4)
	}
	return loom.Or(names)
}

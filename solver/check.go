package solver

import (
	"fmt"
	"slices"

	"loom/app/loom"
)

// Codes of loom.Unsat and loom.Reason.
const (
	CodeSize         = "SIZE"
	CodeHardwareType = "NO_HARDWARETYPE"
	CodeImageType    = "NO_IMAGETYPE"
	CodeIncompatible = "SERVICE_INCOMPATIBLE"
	CodeUnknown      = "SERVICE_UNKNOWN"
	CodeDependency   = "MISSING_DEPENDENCY"
	CodeConflict     = "CONFLICT"
	CodeUnsat        = "UNSATISFIABLE"
)

// NewProblem applies the template's defaults and checks
// everything together: types, compatibility, dependencies, conflicts. It
// returns every reason found, in the order of the checks and then by name, under
// the code of the first; Problem is usable only when there is none. Size, lease,
// quota and provider fields are the caller's to check before.
func NewProblem(in Input) (Problem, *loom.Unsat) {
	in = in.withDefaults()
	hardware, reasons := in.checkHardware()
	image, more := in.checkImages()
	reasons = append(reasons, more...)
	reasons = append(reasons, in.checkServices()...)
	if len(reasons) > 0 {
		return Problem{}, &loom.Unsat{Code: reasons[0].Code, Headline: checkHeadline(reasons), Reasons: fewReasons(reasons)}
	}
	return in.problem(hardware, image), nil
}

// maxListed is how many reasons an answer lists, and how many names a suggestion is
// worded with; more would not be read.
const maxListed = 20

// maxClashes is about how many conflicts an answer counts: 500 services of which each
// conflicts with all others have a quarter of a million.
const maxClashes = 1000

// fewReasons are the first of them, and how many there are beside these.
func fewReasons(all []loom.Reason) []loom.Reason {
	more := len(all) - maxListed
	if more <= 0 {
		return all
	}
	return append(slices.Clone(all[:maxListed]), loom.Reason{Code: all[maxListed].Code, ID: "more", Message: fmt.Sprintf("And %d more.", more)})
}

// setOf are the names to look up.
func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func checkHeadline(reasons []loom.Reason) string {
	switch reasons[0].Code {
	case CodeHardwareType:
		return "No hardware type can be used."
	case CodeImageType:
		return "No image type can be used."
	case CodeSize:
		return "The template does not allow this number of nodes."
	}
	if !slices.ContainsFunc(reasons, func(r loom.Reason) bool { return r.Code != CodeDependency && r.Code != CodeUnknown }) {
		if len(reasons) == 1 {
			return "A service is missing."
		}
		return fmt.Sprintf("Services are missing: %d problems.", len(reasons))
	}
	if len(reasons) == 1 {
		if reasons[0].Code == CodeUnsat || reasons[0].Code == CodeEmptyNode {
			return reasons[0].Message
		}
		return "These services do not go together: 1 problem."
	}
	return fmt.Sprintf("These services do not go together: %d problems.", len(reasons))
}

// typeCheck is what hardware types and image types have in common.
type typeCheck struct {
	code, word, field, key string
	wanted, provider       string
	compatible             []string
	names                  []string
	// usable reports whether the i-th has an entry for the provider.
	usable func(i int) bool
}

func (in Input) checkHardware() ([]string, []loom.Reason) {
	t := typeCheck{code: CodeHardwareType, word: "hardware type", field: "hardwaretypes", key: "flavor",
		wanted: in.HardwareType, provider: in.Provider, compatible: in.Template.Compatibility.HardwareTypes}
	for _, h := range in.HardwareTypes {
		t.names = append(t.names, h.Name)
	}
	t.usable = func(i int) bool { return in.HardwareTypes[i].ProviderMap[in.Provider]["flavor"] != "" }
	names, reasons := t.run()
	if pref := in.Template.Preferences; pref != nil {
		return ByPreference(names, pref.HardwareTypes), reasons
	}
	return ByPreference(names, nil), reasons
}

func (in Input) checkImages() ([]string, []loom.Reason) {
	t := typeCheck{code: CodeImageType, word: "image type", field: "imagetypes", key: "image",
		wanted: in.ImageType, provider: in.Provider, compatible: in.Template.Compatibility.ImageTypes}
	for _, i := range in.ImageTypes {
		t.names = append(t.names, i.Name)
	}
	t.usable = func(i int) bool { return in.ImageTypes[i].ProviderMap[in.Provider]["image"] != "" }
	names, reasons := t.run()
	if pref := in.Template.Preferences; pref != nil {
		return ByPreference(names, pref.ImageTypes), reasons
	}
	return ByPreference(names, nil), reasons
}

// run returns the names that can be used, or the reason why there are none.
func (t typeCheck) run() ([]string, []loom.Reason) {
	var names []string
	known, allowed := t.wanted == "", false
	for i, name := range t.names {
		if t.wanted != "" && name != t.wanted {
			continue
		}
		known = true
		if len(t.compatible) > 0 && !slices.Contains(t.compatible, name) {
			continue
		}
		allowed = true
		if t.usable(i) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	id, text := "provider."+t.field, fmt.Sprintf("No %s that the template allows has an entry “%s” for provider %s.", t.word, t.key, t.provider)
	switch {
	case !known:
		id, text = "known."+t.field, fmt.Sprintf("There is no %s named %s.", t.word, t.wanted)
	case !allowed && t.wanted != "":
		id, text = "compat."+t.field, fmt.Sprintf("The template's compatibility list does not allow %s %s.", t.word, t.wanted)
	case !allowed:
		id, text = "compat."+t.field, fmt.Sprintf("The template's compatibility list allows no %s that exists.", t.word)
	case t.wanted != "":
		text = fmt.Sprintf("The %s %s has no entry “%s” for provider %s.", t.word, t.wanted, t.key, t.provider)
	}
	return nil, []loom.Reason{{Code: t.code, ID: id, Message: text}}
}

// checkSize compares the number of machines with what template and server allow.
func (in Input) checkSize() []loom.Reason { return sizeReasons(in.Machines, in.size()) }

// checkServices runs the checks 6 to 9.
func (in Input) checkServices() []loom.Reason {
	var reasons []loom.Reason
	if len(in.Services) == 0 {
		return []loom.Reason{{Code: CodeUnsat, ID: "services", Message: "No service is asked for, and the template has none by default; each node needs one."}}
	}
	if allowed := setOf(in.Template.Compatibility.Services); len(allowed) > 0 {
		for _, s := range in.Services {
			if !allowed[s] {
				reasons = append(reasons, loom.Reason{Code: CodeIncompatible, ID: "compat.services(" + s + ")",
					Message: fmt.Sprintf("The template's compatibility list does not allow service %s.", s)})
			}
		}
	}
	for _, s := range in.Services {
		if _, ok := in.Catalog[s]; !ok {
			reasons = append(reasons, loom.Reason{Code: CodeUnknown, ID: "service(" + s + ")",
				Message: fmt.Sprintf("There is no service named %s.", s)})
		}
	}
	for _, m := range in.missing() {
		reasons = append(reasons, loom.Reason{Code: CodeDependency, ID: fmt.Sprintf("requires(%s,%s)", m.service, m.name),
			Message: fmt.Sprintf("%s requires %s, which no service of the cluster is or provides (dependency of service %s).", m.service, m.name, m.service)})
	}
	for _, c := range in.clashes(maxClashes) {
		with := c.name
		if c.name != c.other {
			with = fmt.Sprintf("%s, which provides %s", c.other, c.name)
		}
		reasons = append(reasons, loom.Reason{Code: CodeConflict, ID: fmt.Sprintf("conflicts(%s,%s)", c.service, c.other),
			Message: fmt.Sprintf("%s conflicts with %s (dependency of service %s).", c.service, with, c.service)})
	}
	return reasons
}

// need is a name that a service requires.
type need struct{ service, name string }

// missing lists what is required and not there, by service and name.
func (in Input) missing() []need {
	offered := map[string]bool{}
	for _, s := range in.Services {
		offered[s] = true
		for _, name := range in.Catalog[s].Dependencies.Provides {
			offered[name] = true
		}
	}
	var out []need
	for _, s := range in.Services {
		d := in.Catalog[s].Dependencies
		for _, name := range sortedSet(slices.Concat(d.Install.Requires, d.Runtime.Requires)) {
			if !offered[name] {
				out = append(out, need{s, name})
			}
		}
	}
	return out
}

// clash is a conflict of service with other, met as name.
type clash struct{ service, other, name string }

// clashes lists the conflicts by service and other service. A name matches the
// service of that name and every other service that provides it. A service never
// clashes with itself: providing "database" and conflicting with it says "no
// other database", as packages do.
// It stops with the service that makes them as many as most.
func (in Input) clashes(most int) []clash {
	var out []clash
	var offering map[string][]string
	for _, s := range in.Services {
		names := sortedSet(in.Catalog[s].Dependencies.Conflicts)
		if len(names) == 0 {
			continue
		}
		if len(out) >= most {
			break
		}
		if offering == nil {
			offering = in.offering()
		}
		met := map[string]string{}
		for _, name := range names {
			for _, other := range offering[name] {
				if _, already := met[other]; other != s && !already {
					met[other] = name
				}
			}
		}
		for _, other := range sortedKeys(met) {
			out = append(out, clash{s, other, met[other]})
		}
	}
	return out
}

// offering lists for each name the services asked for that are or provide it, in
// their order.
func (in Input) offering() map[string][]string {
	by := map[string][]string{}
	for _, s := range in.Services {
		for _, name := range sortedSet(append([]string{s}, in.Catalog[s].Dependencies.Provides...)) {
			by[name] = append(by[name], s)
		}
	}
	return by
}

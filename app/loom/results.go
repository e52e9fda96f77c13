package loom

import (
	"maps"
	"slices"
	"strings"
)

// automatorResult begins the names of what automators report, such as
// "service:shell:web". Services and their results may have any name, so they are kept
// apart from what Loom and providers know of a machine.
const automatorResult = "service:"

// machineFacts are what Loom itself goes by when it signs in to a machine, prepares it
// and deletes it.
var machineFacts = map[string]bool{
	"providerid": true, authFact: true, "ssh_host_keys": true, "ssh_port": true, "ssh_jump_host_keys": true, KeysFact: true,
	"local_host": true, "resource_sets": true, PlaceFact: true, "disks": true, "floating_ip_id": true, "floating_ip_created": true,
}

// AutomatorResults gives results of an automator the names under which a node keeps them.
func AutomatorResults(automator string, results map[string]any) map[string]any {
	if results == nil {
		return nil
	}
	own := make(map[string]any, len(results))
	for name, value := range results {
		own[automatorResult+automator+":"+name] = value
	}
	return own
}

// ResultsFor gives the results of a node as an automator gave and reads them: what
// automators reported has its plain name again. Its own results stand over what is kept
// under a plain name, where older releases kept them; those of others, where nothing is.
// Facts of the machine are never replaced: such a result keeps its long name. Readers
// ("") get the results of all automators like that.
func ResultsFor(automator string, results map[string]any) map[string]any {
	plain := make(map[string]any, len(results))
	reported := make([]string, 0, len(results))
	for name, value := range results {
		if _, _, ok := reportedBy(name); ok {
			reported = append(reported, name)
		} else {
			plain[name] = value
		}
	}
	slices.Sort(reported)
	all := maps.Clone(plain)
	for _, own := range []bool{false, true} {
		for _, long := range reported {
			by, name, _ := reportedBy(long)
			if mine := automator == "" || by == automator; mine != own {
				continue
			}
			_, taken := plain[name]
			switch {
			case machineFacts[name] || fixedConfigKeys[name], taken && !own:
				all[long] = results[long]
			case results[long] == nil:
				delete(all, name)
			default:
				all[name] = results[long]
			}
		}
	}
	return all
}

func reportedBy(long string) (automator, name string, ok bool) {
	rest, ok := strings.CutPrefix(long, automatorResult)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// ReportedByAutomator reports whether a result of a node has the name of one that an
// automator reported.
func ReportedByAutomator(name string) bool {
	_, _, ok := reportedBy(name)
	return ok
}

package macro

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
)

// nearestMacro gives the macro that a wrong name was likely meant to be, "" when
// none is near.
func nearestMacro(name string) string {
	if len(name) > 200 {
		return ""
	}
	if rest, ok := strings.CutPrefix(name, "ip.service."); ok && strings.Contains(rest, ".") {
		// A service with dots in its name needs the type of address before it.
		return "ip.bind_v4.service." + rest
	}
	candidates := []string{"cluster.owner", "host.self", "ip.self"}
	parts := strings.Split(name, ".")
	if last := parts[len(parts)-1]; last != "" && len(parts) > 1 {
		candidates = append(candidates, "host.service."+last, "ip.service."+last, "num.service."+last, "instance.self.service."+last)
		if kind := parts[1]; kind != "" && kind != "service" && kind != "self" {
			candidates = append(candidates, "ip."+kind+".self", "ip."+kind+".service."+last)
		}
	}
	return nearest(name, candidates)
}

// near proposes a service of the cluster for a name that it does not have, for
// MaxProblems names at most.
func (f *Facts) near(service string) string {
	if len(service) > 200 {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	near, ok := f.nearest[service]
	if !ok {
		if len(f.nearest) == MaxProblems {
			return ""
		}
		near = nearest(service, slices.Sorted(maps.Keys(f.services)))
		f.nearest[service] = near
	}
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; the nearest name there is “%s”", near)
}

// nearest gives the candidate that the fewest changes of characters lead to, the
// first of several, "" when it takes more than 2 or a third of the name.
func nearest(name string, candidates []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, c := range candidates {
		if d := loom.EditDistance(name, c, least); d < least && c != name {
			best, least = c, d
		}
	}
	return best
}

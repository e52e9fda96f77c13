package loom

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// DriftKind is what differs from what Loom left there.
type DriftKind string

// The kinds of drift. All but DriftFile and DriftReboot are about what the provider lists.
const (
	DriftFile      DriftKind = "file"
	DriftSize      DriftKind = "size"
	DriftImage     DriftKind = "image"
	DriftAddresses DriftKind = "addresses"
	DriftReboot    DriftKind = "reboot"
)

// Drift is something on a node that is not as Loom left it.
type Drift struct {
	Kind DriftKind `json:"kind"`
	// Service and File are those of DriftFile only.
	Service string `json:"service,omitempty"`
	File    string `json:"file,omitempty"`
	// Since is when the difference was first seen.
	Since time.Time `json:"since"`
	// Was and Now are sums of files, "" for one that is not there, or the provider's words.
	Was string `json:"was,omitempty"`
	Now string `json:"now,omitempty"`
}

// Text says what differs, in a sentence.
func (d Drift) Text() string {
	switch {
	case d.Kind == DriftReboot:
		return "Rebooted, not by Loom."
	case d.Kind == DriftSize:
		return "Its size is " + d.Now + ", it was " + d.Was + "."
	case d.Kind == DriftImage:
		return "Its image is " + d.Now + ", it was " + d.Was + "."
	case d.Kind == DriftAddresses:
		return "Its addresses are " + d.Now + ", they were " + d.Was + "."
	case d.Now == "":
		return d.File + " was removed."
	case d.Was == "":
		return d.File + " was added."
	}
	return d.File + " was changed."
}

// RebootShown is how long a reboot that was not Loom's is shown; an operation of the cluster
// ends that as well.
const RebootShown = 24 * time.Hour

// SumInterval is the time between two looks that sum files.
const SumInterval = time.Hour

// SumUnknown is in place of the sum of a file that could not be read.
const SumUnknown = "?"

// FileSums are SHA-256 sums in hexadecimal of the files of a service, by path: "" for a file
// that is not there.
type FileSums map[string]string

// After returns what sums are compared with after some were seen: with fresh, because the
// service was configured since, those that were seen; else those of before, and those of
// paths that are new.
func (b FileSums) After(seen FileSums, fresh bool) FileSums {
	after := FileSums{}
	for path, sum := range seen {
		if was, known := b[path]; known && !fresh {
			after[path] = was
		} else if sum != SumUnknown {
			after[path] = sum
		}
	}
	return after
}

// Drift returns the files of a service that are not as in b. What could not be read now is
// as it was said to be before.
func (b FileSums) Drift(service string, seen FileSums, before []Drift) (found []Drift) {
	for _, path := range slices.Sorted(maps.Keys(b)) {
		now, watched := seen[path]
		switch {
		case !watched:
		case now == SumUnknown:
			about := Drift{Kind: DriftFile, Service: service, File: path}
			if known := slices.IndexFunc(before, about.same); known >= 0 {
				found = append(found, before[known])
			}
		case now != b[path]:
			found = append(found, Drift{Kind: DriftFile, Service: service, File: path, Was: b[path], Now: now})
		}
	}
	return found
}

// MachineFacts are what a provider says of a machine, in its own words; empty where it does
// not say.
type MachineFacts struct {
	Size      string   `json:"size,omitempty"`
	Image     string   `json:"image,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
}

// Facts returns what can be compared with another list. That is nothing of a machine that
// does not run: some clouds take its addresses.
func (m TaggedMachine) Facts() (facts MachineFacts, known bool) {
	if m.State != StateRunning {
		return facts, false
	}
	addresses := slices.Compact(slices.Sorted(slices.Values(m.Addresses)))
	return MachineFacts{m.Flavor, m.Image, addresses}, m.Flavor != "" || m.Image != "" || len(addresses) > 0
}

// ListedMachine is what the first list after CREATE said of a machine, and the last one.
type ListedMachine struct {
	First MachineFacts `json:"first,omitzero"`
	Last  MachineFacts `json:"last,omitzero"`
}

// Drift returns what is not as in the first list, of what both say.
func (m ListedMachine) Drift() (found []Drift) {
	compare := func(kind DriftKind, was, now string) {
		if was != "" && now != "" && was != now {
			found = append(found, Drift{Kind: kind, Was: was, Now: now})
		}
	}
	compare(DriftSize, m.First.Size, m.Last.Size)
	compare(DriftImage, m.First.Image, m.Last.Image)
	compare(DriftAddresses, strings.Join(m.First.Addresses, ", "), strings.Join(m.Last.Addresses, ", "))
	return found
}

// DriftSince fills in when drift without a time was first seen: as before for what differed
// already, else at.
func DriftSince(found, before []Drift, at time.Time) []Drift {
	for i := range found {
		d := &found[i]
		if !d.Since.IsZero() {
			continue
		}
		d.Since = at
		if known := slices.IndexFunc(before, d.same); known >= 0 {
			d.Since = before[known].Since
		}
	}
	return found
}

// same reports whether drift is about the same thing.
func (d *Drift) same(other Drift) bool {
	return d.Kind == other.Kind && d.Service == other.Service && d.File == other.File
}

// driftShown is how much of the drift of a service, or of a machine, its incident names.
const driftShown = 3

// maxDriftText bounds that, in characters.
const maxDriftText = 400

// driftTroubles are the drift of each service, and of the machine.
func driftTroubles(drift []Drift) (troubles []Trouble) {
	texts := map[string][]string{}
	for _, d := range drift {
		texts[d.Service] = append(texts[d.Service], d.Text())
	}
	for _, service := range slices.Sorted(maps.Keys(texts)) {
		all := texts[service]
		message := strings.Join(all[:min(driftShown, len(all))], " ")
		if more := len(all) - driftShown; more > 0 {
			message += " " + itoa(more) + " more."
		}
		if text := []rune(message); len(text) > maxDriftText {
			message = string(text[:maxDriftText]) + "…"
		}
		troubles = append(troubles, Trouble{Kind: IncidentDrift, Service: service, Message: message})
	}
	return troubles
}

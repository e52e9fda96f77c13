package provisioner

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"loom/app/loom"
)

// cleaner makes an answer fit to be stored and shown: without secrets and control
// characters, and no longer than answers may be. A provider, and even more a cloud, may say
// anything.
type cleaner struct{ *Redactor }

func (c cleaner) text(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, c.Text(strings.ToValidUTF8(text, "")))
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

func (c cleaner) check(check loom.ProbeCheck) loom.ProbeCheck {
	check.Name, check.Message = c.text(check.Name, loom.MaxProbeName), c.text(check.Message, loom.MaxProbeMessage)
	check.Millis = max(check.Millis, 0)
	return check
}

// offer gives id and name of what is offered; ok is false for an id that cannot be given
// back to the provider as it is.
func (c cleaner) offer(id, name string) (cleanID, cleanName string, ok bool) {
	cleanID = c.text(id, loom.MaxProbeID)
	return cleanID, c.text(name, loom.MaxProbeMessage), cleanID == id && len(id) <= loom.MaxProbeID && strings.TrimSpace(id) != ""
}

func (c cleaner) probe(p loom.Probe) loom.Probe {
	clean := loom.Probe{Time: p.Time, OK: p.OK && len(p.Checks) > 0}
	for _, check := range p.Checks[:min(len(p.Checks), loom.MaxProbeChecks)] {
		clean.Checks = append(clean.Checks, c.check(check))
	}
	if failed, there := p.Failed(); there { // never left out
		clean.OK = false
		if _, shown := clean.Failed(); !shown {
			clean.Checks[len(clean.Checks)-1] = c.check(failed)
		}
	}
	for _, f := range p.Flavors[:min(len(p.Flavors), loom.MaxProbeOffers)] {
		if id, name, ok := c.offer(f.ID, f.Name); ok {
			clean.Flavors = append(clean.Flavors, loom.ProbeFlavor{ID: id, Name: name, VCPU: f.VCPU, RAM: f.RAM})
		}
	}
	for _, i := range p.Images[:min(len(p.Images), loom.MaxProbeOffers)] {
		if id, name, ok := c.offer(i.ID, i.Name); ok {
			clean.Images = append(clean.Images, loom.ProbeImage{ID: id, Name: name})
		}
	}
	for field, choices := range p.Choices {
		if len(clean.Choices) == loom.MaxProbeFields {
			break
		}
		if _, _, ok := c.offer(field, ""); !ok || len(field) > loom.MaxProbeName {
			continue
		}
		if clean.Choices == nil {
			clean.Choices = map[string][]loom.ProbeChoice{}
		}
		for _, choice := range choices[:min(len(choices), loom.MaxProbeChoices)] {
			if id, name, ok := c.offer(choice.ID, choice.Name); ok {
				clean.Choices[field] = append(clean.Choices[field], loom.ProbeChoice{ID: id, Name: name})
			}
		}
	}
	return clean
}

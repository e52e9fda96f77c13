package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/ui"
)

// newerLines is how many differences of a service its form lists.
const newerLines = 12

// newestService is a service as the catalog has it, nil where it has none.
func (s *Server) newestService(ctx context.Context, actor loom.Actor, name string) (*loom.Service, error) {
	entry, _, err := s.Catalog.Released(ctx, actor, loom.KindService, name)
	if errors.Is(err, loom.NotFound) {
		return nil, nil
	}
	service, _ := entry.(*loom.Service)
	return service, err
}

func (s *Server) addParts(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	picker := ui.ChoiceModel{Name: "services", Legend: "Services", Filter: "Filter services", Error: errs.For("services"),
		Help: "Those that the template knows and the cluster does not have."}
	for _, name := range slices.Sorted(slices.Values(v.Template.Compatibility.Services)) {
		if _, there := v.Services[name]; there {
			continue
		}
		newest, err := s.newestService(ctx, actor, name)
		if err != nil {
			return nil, "", err
		}
		if newest != nil {
			picker.Choices = append(picker.Choices, ui.Choice{Value: name, Label: name, Description: newest.Description, Checked: slices.Contains(f.list("services"), name)})
		}
	}
	if len(picker.Choices) == 0 {
		return nil, "The cluster has all services that its template allows.", nil
	}
	return []clusterview.FormPart{{Picker: &picker}, policyPart(v, f, errs)}, "", nil
}

// presentServices lists the services of a cluster to choose from.
func presentServices(v clusters.ClusterView, f changeForm, errs ui.FormErrors) ui.ChoiceModel {
	picker := ui.ChoiceModel{Name: "services", Legend: "Services", Filter: "Filter services", Error: errs.For("services")}
	for _, name := range slices.Sorted(maps.Keys(v.Services)) {
		on := 0
		for _, n := range placedNodes(v) {
			if slices.Contains(n.Services, name) {
				on++
			}
		}
		picker.Choices = append(picker.Choices, ui.Choice{Value: name, Label: name, Description: v.Services[name].Description,
			Facts: []string{"on " + ui.Count(on, "node", "nodes")}, Checked: slices.Contains(f.list("services"), name)})
	}
	return picker
}

func (s *Server) removeParts(_ context.Context, _ loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	picker := presentServices(v, f, errs)
	if len(picker.Choices) == 0 {
		return nil, "The cluster has no services.", nil
	}
	return []clusterview.FormPart{{Picker: &picker}, policyPart(v, f, errs)}, "", nil
}

// rollFields say how many nodes are changed at a time.
func rollFields(f changeForm, errs ui.FormErrors, healthy bool) clusterview.FormPart {
	batch := ui.FieldModel{Name: "batch", Label: "Nodes at a time", Kind: ui.FieldNumber, Value: f.of("batch"), Min: "1", Optional: true, Placeholder: "1", Error: errs.For("batch"),
		Help: "The next ones follow when these run again."}
	part := clusterview.FormPart{Pair: []ui.FieldModel{batch}}
	if healthy {
		part.Pair = append(part.Pair, ui.FieldModel{Name: "minHealthy", Label: "Nodes that stay up", Kind: ui.FieldNumber, Value: f.of("minHealthy"), Min: "0", Optional: true,
			Error: errs.For("minHealthy"), Help: "Of each service, at any time. Empty: all but one batch."})
	}
	return part
}

// entryValue names an entry in a form.
func entryValue(kind loom.EntityKind, name string) string { return string(kind) + ":" + name }

func (s *Server) updateParts(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	list, err := s.Clusters.Newer(ctx, actor, v.ID)
	if err != nil {
		return nil, "", err
	}
	if len(list) == 0 {
		return nil, "The cluster is up to date.", nil
	}
	picker := ui.ChoiceModel{Name: "entries", Legend: "Newer entries", Filter: "Filter entries", Error: errs.For("entries"), Optional: true, Help: "None ticked: all of these."}
	var newer []clusterview.NewerEntry
	for _, e := range list {
		value := entryValue(e.Kind, e.Name)
		c := ui.Choice{Value: value, Label: e.Name, Facts: []string{e.Kind.Word()}, Checked: slices.Contains(f.list("entries"), value)}
		if e.From != e.To {
			c.Facts = append(c.Facts, fmt.Sprintf("version %d → %d", e.From, e.To))
		}
		if len(e.Files) > 0 {
			c.Facts = append(c.Facts, "newer files: "+strings.Join(e.Files, ", "))
		}
		if e.Machines > 0 {
			c.Facts = append(c.Facts, ui.Count(e.Machines, "machine", "machines")+" replaced")
		}
		picker.Choices = append(picker.Choices, c)
		if e.Present == nil || e.From == e.To {
			continue
		}
		differences, err := catalog.CompareEntries(e.Present, e.Next)
		if err != nil {
			return nil, "", err
		}
		newer = append(newer, newerEntry(e.Name, e.From, e.To, differences))
	}
	return []clusterview.FormPart{{Picker: &picker}, {Newer: newer}, rollFields(f, errs, true), policyPart(v, f, errs)}, "", nil
}

func newerEntry(name string, from, to int, differences []catalog.Difference) clusterview.NewerEntry {
	n := clusterview.NewerEntry{Name: name, From: from, To: to, More: max(0, len(differences)-newerLines)}
	signs := map[catalog.Sign]ui.ChangeSign{catalog.SignAdded: ui.SignCreate, catalog.SignChanged: ui.SignChange, catalog.SignRemoved: ui.SignRemove}
	shown := func(v any) string {
		if v == nil {
			return ""
		}
		return loom.JSONText(loom.MaskSecrets(v))
	}
	for _, d := range differences[:min(len(differences), newerLines)] {
		n.Changes = append(n.Changes, ui.ChangeModel{Sign: signs[d.Sign], Name: page.PlainPath(d.Path), Old: shown(d.Old), New: shown(d.New)})
	}
	return n
}

func (s *Server) resizeParts(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	list, err := s.Catalog.Entries(ctx, actor, loom.KindHardwareType, catalog.ListInput{Page: loom.Page{Limit: loom.MaxPageLimit}, Released: true})
	if err != nil {
		return nil, "", err
	}
	on := map[string]int{}
	for _, n := range placedNodes(v) {
		on[n.HardwareType]++
	}
	field := ui.FieldModel{Name: "hardwaretype", Label: "Hardware type", Kind: ui.FieldSelect, Error: errs.For("hardwaretype"), Width: "m",
		Options: []ui.Option{{Value: "", Label: "Choose"}}}
	for _, item := range list.Items {
		t, ok := item.Entry.(*loom.HardwareType)
		if !ok {
			continue
		}
		o := ui.Option{Value: t.Name, Label: t.Name, Selected: t.Name == f.of("hardwaretype")}
		flavor := t.ProviderMap[v.Provider.Name]["flavor"]
		allowed := v.Template.Compatibility.HardwareTypes
		switch {
		case flavor == "":
			o.WhyNot = "no flavor at " + v.Provider.Name
		case len(allowed) > 0 && !slices.Contains(allowed, t.Name):
			o.WhyNot = "not compatible with the template"
		case flavor != t.Name:
			o.Label += " (" + flavor + ")"
		}
		if on[t.Name] > 0 {
			o.Label += ", now on " + ui.Count(on[t.Name], "node", "nodes")
		}
		field.Options = append(field.Options, o)
	}
	picker := presentServices(v, f, errs)
	picker.Legend, picker.Optional, picker.Help = "Only nodes with these services", true, "None ticked: all nodes."
	return []clusterview.FormPart{{Field: &field}, {Picker: &picker}, rollFields(f, errs, true), policyPart(v, f, errs)}, "", nil
}

package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/ui"
)

// providerOffers are the providers of a tenant with what they said that they have.
type providerOffers struct {
	providers []loom.Entry
	probes    map[string]loom.Probe
	// kind is what the form is about, verified what providers said of it of late, and
	// failed why they could not be asked just now.
	kind     loom.OfferKind
	verified map[string]map[string]loom.Probe
	failed   map[string]loom.Probe
	now      time.Time
}

// offersFor is offers with what providers said of single sizes or images.
func (s *Server) offersFor(r *http.Request, actor loom.Actor, kind loom.OfferKind, d formDraft) (providerOffers, error) {
	o, err := s.offers(r, actor)
	if err != nil {
		return o, err
	}
	o.kind, o.failed, o.now = kind, d.Told, s.now()
	o.verified, err = s.Fleet.Verified(r.Context(), actor, kind)
	return o, err
}

func (s *Server) offers(r *http.Request, actor loom.Actor) (providerOffers, error) {
	found, err := s.Catalog.Newest(r.Context(), actor, loom.KindProvider)
	if err != nil {
		return providerOffers{}, err
	}
	probes, err := s.Fleet.Offers(r.Context(), actor)
	return providerOffers{providers: found[loom.KindProvider], probes: probes}, err
}

// flavors lets a field suggest the sizes of a provider.
func (o providerOffers) flavors(f form.Field, provider string) form.Field {
	for _, flavor := range o.probes[provider].Flavors {
		if len(f.Suggest) == maxOffers {
			break
		}
		var facts []string
		if flavor.Name != flavor.ID {
			facts = append(facts, flavor.Name)
		}
		if flavor.VCPU > 0 {
			facts = append(facts, ui.Count(flavor.VCPU, "processor", "processors"))
		}
		if flavor.RAM > 0 {
			facts = append(facts, strconv.Itoa(flavor.RAM)+" MB")
		}
		f.Suggest = append(f.Suggest, ui.Option{Value: flavor.ID, Label: strings.Join(facts, ", ")})
	}
	return o.told(f)
}

// images lets a field suggest the images of a provider.
func (o providerOffers) images(f form.Field, provider string) form.Field {
	for _, image := range o.probes[provider].Images {
		if len(f.Suggest) == maxOffers {
			break
		}
		f.Suggest = append(f.Suggest, ui.Option{Value: image.ID, Label: image.Name})
	}
	return o.told(f)
}

// told says of a field that it suggests something.
func (o providerOffers) told(f form.Field) form.Field {
	if n := len(f.Suggest); n > 0 {
		f.Face.Help += " Suggests what the provider offered when it was last tested."
	}
	return f
}

// mapSection is the part of hardware and image types that says what each provider
// calls them.
func (o providerOffers) mapSection(thing string, row func(at form.Path, provider string) []form.Part) form.Section {
	byName := map[string]*loom.Provider{}
	for _, e := range o.providers {
		if p, ok := e.(*loom.Provider); ok {
			byName[p.Name] = p
		}
	}
	title := func(name string) string {
		p := byName[name]
		switch {
		case p == nil:
			return "There is no provider of this name; the row is kept, without effect."
		case p.Label != "" && p.Label != p.Name:
			return p.Label + ", type " + p.Type
		}
		return "type " + p.Type
	}
	unmapped := func(free []form.Choice) templ.Component {
		names := make([]string, len(free))
		for i, c := range free {
			names[i] = c.Value
		}
		return adminview.Unmapped(names, thing)
	}
	return form.Section{ID: "map", Title: "On each provider", Parts: []form.Part{form.Keyed{
		Path: form.At("providermap"), Noun: "Provider", ChooseLabel: "Provider to add", New: map[string]any{}, Row: row, Choices: choicesOf(o.providers),
		Empty: "No provider can make " + thing + " yet: add one.", Title: title, After: unmapped,
	}}}
}

// Names of the query with which the form of a hardware or image type takes over what a
// provider offers.
const (
	fieldProvider = "provider"
	fieldFlavor   = "flavor"
	fieldImage    = "image"
)

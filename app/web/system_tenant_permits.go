package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/ui"
)

// Fields of the form of a tenant that say what it may do with providers.
const (
	fieldTypes = "types"
	fieldMay   = "may"
	// fieldShownTypes holds the types that the form offered: what is not ticked of them is
	// off, others stay as they are.
	fieldShownTypes      = "shownTypes"
	fieldPrivateNetworks = "privateNetworks"
	fieldInstanceRoles   = "instanceRoles"
)

// readPermits reads what the form says of permits; a form without them leaves them alone.
func readPermits(f url.Values, had loom.Permits, in *account.TenantInput) loom.Permits {
	shown := strings.Fields(f.Get(fieldShownTypes))
	if len(shown) == 0 {
		return had
	}
	p := loom.Permits{PrivateNetworks: slices.Contains(f[fieldMay], fieldPrivateNetworks), InstanceRoles: slices.Contains(f[fieldMay], fieldInstanceRoles)}
	for _, name := range append(slices.Clone(shown), had.TypesOff...) {
		off := slices.Contains(had.TypesOff, name)
		if slices.Contains(shown, name) {
			off = !slices.Contains(f[fieldTypes], name)
		}
		if off && !slices.Contains(p.TypesOff, name) {
			p.TypesOff = append(p.TypesOff, name)
		}
	}
	in.PrivateNetworks, in.InstanceRoles, in.TypesOff = &p.PrivateNetworks, &p.InstanceRoles, &p.TypesOff
	return p
}

// permitFields are the boxes of what a tenant may do with providers.
func (s *Server) permitFields(r *http.Request, actor loom.Actor, p loom.Permits, errs ui.FormErrors) ([]templ.Component, error) {
	types, err := s.Accounts.ProviderTypes(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	choose := ui.ChoiceModel{Name: fieldTypes, Legend: "Provider types", Error: errs.For("providerTypesOff"),
		Help: "Machines are created with these only. Machines that exist keep working and can be deleted."}
	// Those that are off come first: the list scrolls.
	slices.SortStableFunc(types, func(a, b loom.PluginType) int {
		off := func(t loom.PluginType) int { return min(slices.Index(p.TypesOff, t.Name), 0) }
		return off(b) - off(a)
	})
	var shown []string
	for _, t := range types {
		shown = append(shown, t.Name)
		choose.Choices = append(choose.Choices, ui.Choice{Value: t.Name, Label: labelOf(t), Checked: !slices.Contains(p.TypesOff, t.Name)})
	}
	may := ui.ChoiceModel{Name: fieldMay, Legend: "Providers may use", Choices: []ui.Choice{
		{Value: fieldPrivateNetworks, Label: "Private networks", Checked: p.PrivateNetworks,
			Description: "Loom connects to private addresses (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7) that the tenant’s providers and their machines have."},
		{Value: fieldInstanceRoles, Label: "Instance roles", Checked: p.InstanceRoles,
			Description: "Providers sign in to AWS with the role of the host that a provisioner runs on."},
	}}
	if len(types) == 0 {
		return []templ.Component{ui.Ticks(may)}, nil
	}
	return []templ.Component{officeview.Hidden(fieldShownTypes, strings.Join(shown, " ")), ui.Ticks(choose), ui.Ticks(may)}, nil
}

func labelOf(t loom.PluginType) string {
	if t.Label == "" || t.Label == t.Name {
		return t.Name
	}
	return t.Label + " (" + t.Name + ")"
}

// permitDefs say what a tenant may do with providers.
func permitDefs(p loom.Permits) []ui.Def {
	word := func(on bool) string {
		if on {
			return "allowed"
		}
		return "not allowed"
	}
	off := "–"
	if len(p.TypesOff) > 0 {
		off = strings.Join(p.TypesOff, ", ")
	}
	return []ui.Def{{Term: "Provider types off", Text: off}, {Term: "Private networks", Text: word(p.PrivateNetworks)}, {Term: "Instance roles", Text: word(p.InstanceRoles)}}
}

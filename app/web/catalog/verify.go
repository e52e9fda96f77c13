package catalog

import (
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/ui"
)

// doVerify is the verb of the button that asks a provider for the size or image of a
// row.
const doVerify = "verify"

// verifyPart is the button of a row, with what the provider said of its value.
type verifyPart struct {
	// At is the row, Field what holds the provider's id.
	At, Field form.Path
	Provider  string
	Offers    providerOffers
}

// verifying adds to a row of a known provider that its value can be looked up.
func (o providerOffers) verifying(f form.Field, at form.Path, provider string) form.Part {
	for _, p := range o.providers {
		if p.Meta().Name == provider {
			return verifyPart{At: at, Field: f.Path, Provider: provider, Offers: o}
		}
	}
	return verifyPart{}
}

// Read changes nothing: whoever handles the request asks the provider.
func (v verifyPart) Read(*form.Input) {}

// Show implements form.Part.
func (v verifyPart) Show(out *form.Output) templ.Component {
	if v.Provider == "" {
		return nil
	}
	m := adminview.VerifyModel{ID: out.ID("verified-" + v.At.String()), Now: v.Offers.now}
	m.Button = out.Step(ui.ButtonModel{Label: "Verify", Icon: "check", Busy: "Asking…", Small: true}, doVerify, v.At, m.ID)
	m.Button.Attrs["aria-label"] = "Verify the " + v.Offers.kind.Noun() + " with " + v.Provider
	m.Offer = strings.TrimSpace(out.Doc.Text(v.Field))
	answer, told := v.Offers.failed[v.At.String()]
	if !told {
		answer, told = v.Offers.verified[v.Provider][m.Offer]
	}
	if told && len(answer.Checks) > 0 {
		m.Time, m.Text = answer.Time, answer.Checks[0].Message
		m.State = &ui.State{Word: "Verified", Icon: "check-circle", Tone: ui.ToneOK}
		if !answer.OK {
			m.State = &ui.State{Word: "Not confirmed", Icon: "alert", Tone: ui.ToneWarn}
		}
	}
	return adminview.Verify(m)
}

// verifyRow asks a provider for what the row says whose button was pressed. Why it could
// not be asked is told beside the row.
func (s *Server) verifyRow(r *http.Request, actor loom.Actor, d *draft) {
	verb, target, _ := strings.Cut(r.PostForm.Get(form.FieldDo), ":")
	member := map[loom.EntityKind]string{loom.KindHardwareType: fieldFlavor, loom.KindImageType: fieldImage}[d.kind]
	doc, err := form.Parse(d.body)
	if verb != doVerify || member == "" || err != nil {
		return
	}
	for _, provider := range doc.Keys(form.At("providermap")) {
		at := form.At("providermap", provider)
		if at.String() != target {
			continue
		}
		id := strings.TrimSpace(doc.Text(at.To(member)))
		kind := map[string]loom.OfferKind{fieldFlavor: loom.OfferFlavor, fieldImage: loom.OfferImage}[member]
		if _, err := s.Processes.Verify(r.Context(), actor, provider, loom.Offer{Kind: kind, ID: id}); err != nil {
			e := loom.AsError(err)
			message := e.Message
			if len(e.Fields) > 0 {
				message = e.Fields[0].Message
			}
			d.told = map[string]loom.Probe{target: loom.FailedProbe(member, message)}
		}
	}
}

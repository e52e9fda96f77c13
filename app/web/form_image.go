package web

import (
	"net/http"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/ui"
)

// imageForm is the form of an image type: which image it is at each provider.
func imageForm(s *Server, r *http.Request, actor loom.Actor, d formDraft) (form.Form, error) {
	offers, err := s.offersFor(r, actor, loom.OfferImage, d)
	if err != nil {
		return form.Form{}, err
	}
	row := func(at form.Path, provider string) []form.Part {
		image := form.Field{Path: at.To("image"), AsText: true, Empty: form.EmptyText, Face: ui.FieldModel{Label: "Image", Mono: true, Width: "l", Autocomplete: "off",
			Help: "The provider's id of the image. For the local provider a Debian suite, with packages behind a colon: bookworm:nginx-light."}}
		user := form.Field{Path: at.To("sshuser"), AsText: true, Face: ui.FieldModel{Label: "User who signs in", Mono: true, Optional: true, Width: "s", Placeholder: "root", Autocomplete: "off"}}
		return []form.Part{offers.images(image, provider), offers.verifying(image, at, provider), user, otherTerms(at, "image", "sshuser")}
	}
	return form.Form{Sections: []form.Section{
		aboutSection(d, "A named operating system image. Templates and clusters name it; each provider has its own id for it."),
		offers.mapSection("a machine with this image", row),
	}}, nil
}

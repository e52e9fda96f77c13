package catalog

import (
	"net/http"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/ui"
)

// hardwareForm is the form of a hardware type: what each provider calls the size.
func hardwareForm(s *Server, r *http.Request, actor loom.Actor, d formDraft) (form.Form, error) {
	offers, err := s.offersFor(r, actor, loom.OfferFlavor, d)
	if err != nil {
		return form.Form{}, err
	}
	row := func(at form.Path, provider string) []form.Part {
		text := func(key, label, width string) form.Field {
			return form.Field{Path: at.To(key), AsText: true, Face: ui.FieldModel{Label: label, Mono: true, Optional: true, Width: width, Autocomplete: "off"}}
		}
		flavor := text("flavor", "Flavor", "l")
		flavor.Empty, flavor.Face.Optional = form.EmptyText, false
		flavor.Face.Help = "What the provider calls this size. For the local provider limits such as mem=256m,pids=256,cpu=100."
		number := func(key, label string) form.Field {
			f := text(key, label, "xs")
			f.Face.Kind = ui.FieldNumber
			return f
		}
		disks := text("disks", "Disks, GB", "s")
		disks.Face.Placeholder = "sda=40 sdb=200"
		return []form.Part{offers.flavors(flavor, provider), offers.verifying(flavor, at, provider),
			form.Row{Parts: []form.Part{number("vcpu", "Processors"), number("ram", "Memory, GB"), number("cost", "Price per hour"), disks}},
			otherTerms(at, "flavor", "vcpu", "ram", "cost", "disks"),
		}
	}
	return form.Form{Sections: []form.Section{
		aboutSection(d, "A named size of machine. Templates and clusters name it; each provider has its own word for it."),
		offers.mapSection("a machine of this type", row),
	}}, nil
}

// otherTerms are the members of a row of a provider map that have no field of their
// own; the provider's plugin may know them.
func otherTerms(at form.Path, known ...string) form.Part {
	return form.Pairs{Path: at, Noun: "Term", KeyLabel: "Term", ValueLabel: "Value", Not: known, AddLabel: "Add further term"}
}

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

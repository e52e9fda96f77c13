package processes

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"loom/app/loom"
	"loom/app/store"
)

// maxOfferID is the longest id of a size or an image that is asked for, in bytes.
const maxOfferID = 1000

// Verify asks a provider of the actor's tenant, through a provisioner, whether it has
// one size or image, and waits for the answer, which is kept for a while. That it has
// none is an answer, not an error. Errors: Forbidden, NotFound for the provider,
// Invalid for an id that is empty or too long, Unavailable when there is no answer in
// time.
func (f *Processes) Verify(ctx context.Context, actor loom.Actor, provider string, offer loom.Offer) (loom.Probe, error) {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return loom.Probe{}, err
	}
	if err := checkOffer(offer); err != nil {
		return loom.Probe{}, err
	}
	if _, err := store.Provider(ctx, f.db, actor.Tenant, provider); err != nil {
		return loom.Probe{}, err
	}
	id, err := f.ask(ctx, actor.Tenant, store.ProviderRequest{Provider: provider, Purpose: store.PurposeVerify, Offer: offer, By: actor.User},
		loom.AuditEntry{Actor: actor, Verb: "verify", Kind: loom.KindProvider.Word(), Object: provider, After: offer}, nil)
	if err != nil {
		return loom.Probe{}, err
	}
	if _, _, err := f.await(ctx, actor.Tenant, id, "the look-up"); err != nil {
		return loom.Probe{}, err
	}
	v, err := store.VerificationByID(ctx, f.db, actor.Tenant, id)
	if errors.Is(err, loom.NotFound) {
		return loom.Probe{}, loom.NewError(loom.Unavailable, "The answer of the provider is not there any more; verify again.")
	}
	return v.Answer, err
}

func checkOffer(offer loom.Offer) error {
	field := string(offer.Kind)
	switch {
	case offer.Kind != loom.OfferFlavor && offer.Kind != loom.OfferImage:
		return loom.InvalidFields([]loom.FieldError{{Field: "kind", Message: "What can be verified is flavor or image."}})
	case strings.TrimSpace(offer.ID) == "":
		return loom.InvalidFields([]loom.FieldError{{Field: field, Message: "Give the provider's id of the " + offer.Kind.Noun() + " first."}})
	case len(offer.ID) > maxOfferID || !utf8.ValidString(offer.ID) || strings.ContainsRune(offer.ID, 0):
		return loom.InvalidFields([]loom.FieldError{{Field: field, Message: "The id is longer than 1000 bytes, or holds characters that no id has."}})
	}
	return nil
}

// Verified gives what providers of the actor's tenant said of late about sizes or about
// images, by provider and id.
func (f *Processes) Verified(ctx context.Context, actor loom.Actor, kind loom.OfferKind) (map[string]map[string]loom.Probe, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	all, err := store.Verifications(ctx, f.db, actor.Tenant, kind)
	found := map[string]map[string]loom.Probe{}
	for _, v := range all {
		if found[v.Provider] == nil {
			found[v.Provider] = map[string]loom.Probe{}
		}
		found[v.Provider][v.ID] = v.Answer
	}
	return found, err
}

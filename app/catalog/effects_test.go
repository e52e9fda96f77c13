package catalog_test

import (
	"errors"
	"testing"

	"loom/app/loom"
)

func TestEffects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(t, b.admin, loom.KindPartialTemplate, `{"name":"part","defaults":{"services":["a"],"config":{"x":1}}}`)
	b.save(t, b.admin, loom.KindTemplate, `{"name":"one","includes":[{"name":"part"}],"defaults":{"provider":"p"}}`)
	b.save(t, b.admin, loom.KindTemplate, `{"name":"two","extends":{"name":"one"},"defaults":{"config":{"x":2}}}`)
	b.save(t, b.admin, loom.KindTemplate, `{"name":"alone"}`)
	draft := decode(t, loom.KindPartialTemplate, `{"name":"part","immutable":true,"defaults":{"services":["a","b"],"config":{"x":1}}}`)
	found, err := b.Effects(b.ctx, b.user, loom.KindPartialTemplate, draft)
	if err != nil || len(found) != 2 || found[0].Template != "one" || found[1].Template != "two" {
		t.Fatalf("found %+v, %v", found, err)
	}
	if len(found[0].Changes) != 1 || found[0].Changes[0].Path != "/defaults/services/1" || found[0].Changes[0].New != "b" || found[0].Problem != "" {
		t.Errorf("one: %+v", found[0])
	}
	if found[1].Problem == "" || found[1].Before != "" || len(found[1].Changes) != 0 {
		t.Errorf("two sets a key that would be locked: %+v", found[1])
	}
	// Nothing was stored by asking.
	if stored, _, err := b.Entry(b.ctx, b.admin, loom.KindPartialTemplate, "part", 0); err != nil || stored.Meta().Version != 1 {
		t.Errorf("stored %+v, %v", stored, err)
	}
	parent := decode(t, loom.KindTemplate, `{"name":"one","defaults":{"provider":"q"}}`)
	if found, err = b.Effects(b.ctx, b.user, loom.KindTemplate, parent); err != nil || len(found) != 1 || found[0].Template != "two" || len(found[0].Changes) == 0 {
		t.Errorf("of a parent: %+v, %v", found, err)
	}
	stranger := b.user
	stranger.Tenant = "t-2"
	if found, err = b.Effects(b.ctx, stranger, loom.KindPartialTemplate, draft); err != nil || len(found) != 0 {
		t.Errorf("another tenant sees %+v, %v", found, err)
	}
	stranger.Scopes = []loom.Scope{}
	if _, err = b.Effects(b.ctx, stranger, loom.KindPartialTemplate, draft); err != nil && !errors.Is(err, loom.Forbidden) {
		t.Errorf("without rights: %v", err)
	}
}

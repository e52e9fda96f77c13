package loom

import (
	"strings"
	"testing"
)

// The rule is said exactly, with the first character that breaks it.
func TestCheckNameShowsTheOffender(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Übergröße-кластер-漢字": "this one has “Ü”.",
		"shop-кластер":         "this one has “к”.",
		"shop front/x":         "this one has a space.",
		"shop/front":           "this one has “/”.",
		"shop\u0000":           "this one has the character U+0000.",
		"shop\u00a0front":      "this one has the character U+00A0.",
		"shop\u0301":           "this one has the character U+0301.",
		"shop\xff":             "this one has a byte that is no character.",
		"shop\ufffd":           "this one has “\ufffd”.",
	} {
		errs := CheckName("name", name)
		if len(errs) != 1 || errs[0].Field != "name" || !strings.HasPrefix(errs[0].Message, "A name is made of letters a to z (") || !strings.HasSuffix(errs[0].Message, want) {
			t.Errorf("%q: %v, want %s", name, errs, want)
		}
	}
	if errs := CheckName("name", "Shop_front-1.x"); errs != nil {
		t.Errorf("%v", errs)
	}
}

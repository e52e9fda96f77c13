package loom

import (
	"strings"
	"testing"
)

// The rule is said exactly, with the first character that breaks it.
func TestCheckNameShowsTheOffender(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Übergröße-кластер-漢字": "This name has “Ü”.",
		"shop-кластер":         "This name has “к”.",
		"shop front/x":         "This name has a space.",
		"shop/front":           "This name has “/”.",
		"shop\u0000":           "This name has the character U+0000.",
		"shop\u00a0front":      "This name has the character U+00A0.",
		"shop\u0301":           "This name has the character U+0301.",
		"shop\xff":             "This name has a byte that is no character.",
		"shop\ufffd":           "This name has “\ufffd”.",
	} {
		errs := CheckName("name", name)
		if len(errs) != 1 || errs[0].Field != "name" || !strings.HasPrefix(errs[0].Message, "Use letters without accents") || !strings.HasSuffix(errs[0].Message, want) {
			t.Errorf("%q: %v, want %s", name, errs, want)
		}
	}
	if errs := CheckName("name", "Shop_front-1.x"); errs != nil {
		t.Errorf("%v", errs)
	}
}

package loom_test

import (
	"testing"
	"time"

	"loom/app/loom"
)

func TestViewPreferences(t *testing.T) {
	t.Parallel()
	var none loom.ViewPreferences
	if none.PageRows() != 25 || none.Location() != time.UTC || none.Check() != nil {
		t.Errorf("nothing chosen: %d rows, %v, %v", none.PageRows(), none.Location(), none.Check())
	}
	p := loom.ViewPreferences{Theme: "dark", Rows: 100, Zone: "Europe/Berlin"}
	if p.PageRows() != 100 || p.Location().String() != "Europe/Berlin" || p.Check() != nil {
		t.Errorf("%d rows, %v, %v", p.PageRows(), p.Location(), p.Check())
	}
	bad := loom.ViewPreferences{Theme: "pink", Rows: 26, Zone: "Mars/Olympus"}
	if errs := bad.Check(); len(errs) != 3 || bad.PageRows() != 25 || bad.Location() != time.UTC {
		t.Errorf("%v, %d rows, %v", errs, bad.PageRows(), bad.Location())
	}
	for _, zone := range []string{"Local", "../../etc/passwd", "/etc/passwd", "Europe"} {
		if errs := (loom.ViewPreferences{Zone: zone}).Check(); len(errs) != 1 {
			t.Errorf("%q: %v", zone, errs)
		}
	}
}

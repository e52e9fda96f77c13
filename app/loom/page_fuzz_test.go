package loom

import (
	"errors"
	"slices"
	"testing"
)

// FuzzPageCheck gives any cursor to a list: it is one of this list and order, or
// refused. What is accepted is written again as the same.
func FuzzPageCheck(f *testing.F) {
	f.Add(Cursor{Sort: "name", Keys: []string{"a", "b"}}.Encode(), "", "name", 10)
	f.Add("", Cursor{Sort: "-createTime", Keys: []string{"\x00", "\xff"}}.Encode(), "-createTime", 0)
	f.Add("bm9uc2Vuc2U", "x", "", -1)
	f.Add("eyJzIjoibmFtZSIsImsiOm51bGx9", "", "name", 501)
	f.Fuzz(func(t *testing.T, after, before, sort string, limit int) {
		p := Page{After: after, Before: before, Sort: sort, Limit: limit}
		sorts := []string{"name", "-createTime"}
		c, err := p.Check(2, sorts...)
		if err != nil {
			if !errors.Is(err, Invalid) || len(AsError(err).Fields) == 0 {
				t.Errorf("%+v: %v", p, err)
			}
			return
		}
		if !slices.Contains(sorts, p.Sort) || p.Limit == 0 || p.Limit > MaxPageLimit || after != "" && before != "" {
			t.Errorf("%+v passed", p)
		}
		if (c == nil) != (after == "" && before == "") {
			t.Errorf("%+v gives the cursor %v", p, c)
		}
		if c == nil {
			return
		}
		if c.Sort != p.Sort || len(c.Keys) != 2 {
			t.Errorf("%+v gives the cursor %+v", p, c)
		}
		next := Page{After: c.Encode(), Sort: sort}
		if again, err := next.Check(2, sorts...); err != nil || again.Sort != c.Sort || !slices.Equal(again.Keys, c.Keys) {
			t.Errorf("%+v is read again as %+v, %v", c, again, err)
		}
	})
}

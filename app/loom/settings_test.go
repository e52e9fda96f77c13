package loom

import (
	"reflect"
	"testing"
)

func TestSettingsNormalize(t *testing.T) {
	t.Parallel()
	zero, century := 0, 36501
	for name, c := range map[string]struct {
		in     Settings
		want   []int
		fields []string
	}{
		"usual":      {DefaultSettings(), []int{24, 1}, nil},
		"in order":   {Settings{LeaseReminderHours: []int{1, 48, 1, 3}}, []int{48, 3, 1}, nil},
		"none":       {Settings{}, []int{}, nil},
		"everything": {Settings{LeaseReminderHours: []int{0, 9000}, LeaseGraceHours: -1, MaxTokenDays: &zero}, []int{9000, 0}, []string{"leaseReminderHours[0]", "leaseReminderHours[1]", "leaseGraceHours", "maxTokenDays"}},
		"too long":   {Settings{MaxTokenDays: &century, LeaseGraceHours: 8761}, []int{}, []string{"leaseGraceHours", "maxTokenDays"}},
	} {
		var fields []string
		for _, e := range c.in.Normalize() {
			fields = append(fields, e.Field)
		}
		if !reflect.DeepEqual(fields, c.fields) || !reflect.DeepEqual(c.in.LeaseReminderHours, c.want) {
			t.Errorf("%s: %v, errors at %v", name, c.in.LeaseReminderHours, fields)
		}
	}
}

func TestSettingsRequireLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ required, forEver, refused bool }{{false, false, false}, {false, true, false}, {true, false, false}, {true, true, true}} {
		if errs := (Settings{RequireLease: c.required}).CheckLease("expireTime", c.forEver); (len(errs) == 1 && errs[0].Field == "expireTime") != c.refused {
			t.Errorf("%+v: %v", c, errs)
		}
	}
	if LooksSecret("maxTokenDays") || !LooksSecret("token") || !LooksSecret("oldPassword") {
		t.Error("what looks secret")
	}
}

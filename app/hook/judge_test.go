package hook

import (
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

func TestPausesGrow(t *testing.T) {
	t.Parallel()
	var all time.Duration
	d := store.DueDelivery{}
	for tries := 0; ; tries++ {
		d.Tries, d.Age = tries, all
		o := judge(d, 500, "", nil)
		if o.Status == loom.DeliveryFailed {
			if all < giveUp || all > giveUp+longestWait || tries < 20 || tries > 60 {
				t.Errorf("given up after %s and %d tries", all, tries)
			}
			return
		}
		if o.After < firstPause || o.After > longestWait {
			t.Fatalf("a pause of %s after try %d", o.After, tries)
		}
		all += o.After
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	asked := store.DueDelivery{Blocking: true, To: loom.Hook{Name: "gate"}}
	for _, c := range []struct {
		d       store.DueDelivery
		code    int
		status  loom.DeliveryStatus
		refusal string
	}{
		{store.DueDelivery{}, 200, loom.DeliveryDelivered, ""},
		{store.DueDelivery{}, 299, loom.DeliveryDelivered, ""},
		{store.DueDelivery{}, 409, loom.DeliveryWaiting, ""}, // nobody asked
		{store.DueDelivery{}, 410, loom.DeliveryWaiting, ""},
		{asked, 202, loom.DeliveryDelivered, ""},
		{asked, 409, loom.DeliveryRefused, "The hook “gate” refused: it gave no reason."},
		{asked, 403, loom.DeliveryWaiting, ""},
	} {
		if o := judge(c.d, c.code, "", nil); o.Status != c.status || o.Refusal != c.refusal {
			t.Errorf("%d: %+v", c.code, o)
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"":                 "it gave no reason.",
		"{}":               "it gave no reason.",
		" not\n now ":      "not now",
		`{"reason":"No."}`: "No.",
		`{"detail":"No."}`: "No.",
		`{"reason":7}`:     "it gave no reason.",
		"\xff\x00":         "it gave no reason.",
		`{"reason":"No.","more":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: `{"reason":"No.","more":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		strings.Repeat("é", 600): strings.Repeat("é", 500) + "…",
	} {
		if got := reason(answer); got != want {
			t.Errorf("%.40q gives %.60q", answer, got)
		}
	}
}

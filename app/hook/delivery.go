package hook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// How long deliveries are tried, and how long is waited between two tries: it
// doubles from the first to the last of these.
const (
	giveUp      = 24 * time.Hour
	firstPause  = 10 * time.Second
	longestWait = time.Hour
	// An operation waits for a blocking hook no longer than this.
	patience     = time.Minute
	firstAsked   = 2 * time.Second
	longestAsked = 10 * time.Second
)

const (
	maxAnswer = 64 << 10 // bytes that are read of an answer
	maxReason = 500      // characters of a refusal that are kept
)

// signatureHeader holds "t=<seconds>,v1=<hex of the HMAC-SHA256 of "t.body">".
const signatureHeader = "X-Loom-Signature"

// errBusy is why a hook was never asked.
var errBusy = errors.New("other endpoints of the tenant were waited for all the time")

// Send tries a delivery and says what came of it, which the caller records. ok is
// false when nothing is to be recorded: the hook is gone, the delivery has ended,
// its time has not come, or too many endpoints of its tenant are called; then it is to be tried again after the outcome's
// After, if that is not 0.
func (u *Hooks) Send(ctx context.Context, id loom.DeliveryID) (outcome loom.DeliveryOutcome, ok bool, err error) {
	d, err := store.DueDeliveryAllTenants(ctx, u.db, id)
	if errors.Is(err, loom.NotFound) {
		return outcome, false, nil
	}
	if err != nil {
		return outcome, false, err
	}
	switch {
	case d.Status != loom.DeliveryWaiting:
		return outcome, false, nil
	case d.Due > 0:
		return loom.DeliveryOutcome{After: d.Due}, false, nil
	case !d.To.Enabled:
		return loom.DeliveryOutcome{Status: loom.DeliveryFailed, Error: "The hook was switched off before it could be called."}, true, nil
	case d.Blocking && !d.Waits:
		return loom.DeliveryOutcome{Status: loom.DeliveryFailed, Error: "The operation ended before the hook could be asked."}, true, nil
	}
	if !u.calling.Try(d.To.Tenant) {
		if !d.Blocking || d.Age < patience {
			return loom.DeliveryOutcome{After: firstAsked}, false, nil
		}
		return judge(d, 0, "", errBusy), true, nil
	}
	defer u.calling.Give(d.To.Tenant)
	key, err := u.ring.Open(d.To.Tenant, store.HookSecrets(d.Hook), store.HookSecretField, d.Sealed)
	if err != nil {
		return outcome, false, fmt.Errorf("the secret of hook %d: %w", d.Hook, err)
	}
	body, err := u.opts.Body(d.Notice, d.Delivery, u.opts.PublicURL)
	if err != nil {
		return outcome, false, fmt.Errorf("make the body of delivery %d: %w", id, err)
	}
	began := time.Now()
	code, answer, err := u.post(ctx, d, body, key)
	if ctx.Err() != nil {
		return outcome, false, ctx.Err() // the process stops; that is no try
	}
	outcome = judge(d, code, answer, err)
	outcome.Sent, outcome.Code, outcome.Took = true, code, time.Since(began)
	return outcome, true, nil
}

// judge says what an answer, or none, means.
func judge(d store.DueDelivery, code int, answer string, err error) loom.DeliveryOutcome {
	switch {
	case err == nil && code >= 200 && code <= 299:
		return loom.DeliveryOutcome{Status: loom.DeliveryDelivered}
	case err == nil && code == http.StatusConflict && d.Blocking:
		why := reason(answer)
		return loom.DeliveryOutcome{Status: loom.DeliveryRefused, Error: why, Refusal: fmt.Sprintf("The hook “%s” refused: %s", d.To.Name, why)}
	}
	o := loom.DeliveryOutcome{Status: loom.DeliveryWaiting, Error: trouble(code, err)}
	first, longest, last := firstPause, longestWait, giveUp
	if d.Blocking {
		first, longest, last = firstAsked, longestAsked, patience
	}
	o.After = min(first<<min(d.Tries, 20), longest)
	if d.Age < last {
		return o
	}
	o.Status, o.After = loom.DeliveryFailed, 0
	if d.Blocking && d.To.OnTimeout != loom.OnTimeoutGo {
		o.Refusal = fmt.Sprintf("The hook “%s” gave no valid answer within %s: %s", d.To.Name, patience, o.Error)
	}
	return o
}

// post sends the body, signed, and gives the status and the beginning of the answer.
func (u *Hooks) post(ctx context.Context, d store.DueDelivery, body []byte, key loom.Secret) (int, string, error) {
	ctx, stop := context.WithTimeout(ctx, u.opts.Timeout)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.To.URL, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Loom")
	r.Header.Set("X-Loom-Event", string(d.Event))
	r.Header.Set("X-Loom-Delivery", itoa(int64(d.ID)))
	r.Header.Set(signatureHeader, sign(key, time.Now(), body))
	response, err := u.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	// The status has been given; an answer that breaks off changes nothing.
	answer, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, string(answer), nil
}

// sign makes the value of the header with the signature.
func sign(key loom.Secret, now time.Time, body []byte) string {
	t := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// newClient makes a client that looks at the address of each connection, follows
// no redirect and uses no proxy, which would connect in its place.
func newClient(reach loom.Reach, timeout time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: timeout, ControlContext: reach.Control}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: timeout,
			MaxResponseHeaderBytes: maxAnswer, ForceAttemptHTTP2: true, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// trouble says in a sentence why a try did not succeed, without the URL, which
// may hold what its owner keeps to himself.
func trouble(code int, err error) string {
	var refused *loom.RefusedAddress
	var wrapped *url.Error
	var dns *net.DNSError
	switch {
	case err == nil && code >= 300 && code <= 399:
		return fmt.Sprintf("The endpoint answered %d, a redirect, which is not followed; save the address it leads to.", code)
	case err == nil:
		return strings.TrimSpace(fmt.Sprintf("The endpoint answered %d %s", code, http.StatusText(code))) + "."
	case errors.As(err, &refused):
		return refusal(err, refused)
	case errors.Is(err, context.DeadlineExceeded):
		return "The endpoint did not answer in time."
	case errors.As(err, &dns):
		return "The host name could not be resolved."
	case errors.As(err, &wrapped):
		err = wrapped.Err
	}
	return short("The endpoint could not be called: " + err.Error() + ".")
}

// refusal names the address where the URL has one, else the URL's host. What a name
// leads to, and what kind of address that is, is for the log of the process only.
func refusal(err error, refused *loom.RefusedAddress) string {
	var call *url.Error
	if !errors.As(err, &call) {
		return private(refused.Address)
	}
	target, err := url.Parse(call.URL)
	if err != nil {
		return private(refused.Address)
	}
	if _, err := netip.ParseAddr(target.Hostname()); err == nil {
		return private(refused.Address)
	}
	slog.Warn("hook address refused", "host", target.Hostname(), "address", refused.Address, "why", refused.Error())
	return fmt.Sprintf("“%s” leads to an address that hooks may not reach; whoever runs Loom finds it in the log of the process, and can name it in LOOM_HOOK_NETWORKS.", target.Hostname())
}

// reason finds the sentence in the answer of a hook that refuses.
func reason(answer string) string {
	var members map[string]any
	if loom.ScanJSON([]byte(answer), 0) == nil && json.Unmarshal([]byte(answer), &members) == nil {
		answer = ""
		for _, name := range []string{"reason", "message", "detail"} {
			if text, ok := members[name].(string); ok && answer == "" {
				answer = text
			}
		}
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(answer, "\x00", ""), "")), " ")
	if text == "" {
		return "it gave no reason."
	}
	return short(text)
}

func short(text string) string {
	if runes := []rune(text); len(runes) > maxReason {
		return string(runes[:maxReason]) + "…"
	}
	return text
}

// testEvent is what X-Loom-Event says of a test; no operation has it.
const testEvent loom.HookEvent = "test"

// maxShown is how much of an answer a test shows, in bytes.
const maxShown = 2000

// TestResult is what came of a test.
type TestResult struct {
	// OK says that the endpoint answered 2xx; Problem says why not.
	OK      bool
	Problem string
	// Code is the status of the answer, 0 when there was none.
	Code int
	Took time.Duration
	// Body was sent, Answer is the beginning of what came back.
	Body, Answer string
}

// SentDelivery is a delivery with its body.
type SentDelivery struct {
	loom.Delivery
	Body string
}

// Delivery reads a delivery of a hook with the body that was, or will be, sent.
// NotFound.
func (u *Hooks) Delivery(ctx context.Context, actor loom.Actor, id loom.HookID, delivery loom.DeliveryID) (SentDelivery, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return SentDelivery{}, err
	}
	d, notice, err := store.SentDelivery(ctx, u.db, actor.Tenant, id, delivery)
	if errors.Is(err, loom.NotFound) {
		return SentDelivery{}, loom.NewError(loom.NotFound, "The hook has no delivery %d.", delivery)
	}
	if err != nil {
		return SentDelivery{}, err
	}
	body, err := u.opts.Body(notice, d, u.opts.PublicURL)
	if err != nil {
		return SentDelivery{}, fmt.Errorf("make the body of delivery %d: %w", delivery, err)
	}
	return SentDelivery{d, string(body)}, nil
}

// Test sends a notice about nothing to a hook, signed as all are, also to one that
// is off, and waits for the answer. It is no delivery and is not tried again. An
// endpoint that does not work is an answer, not an error. NotFound.
func (u *Hooks) Test(ctx context.Context, actor loom.Actor, id loom.HookID) (TestResult, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return TestResult{}, err
	}
	h, err := store.HookByID(ctx, u.db, actor.Tenant, id)
	if err != nil {
		return TestResult{}, noHook(id, err)
	}
	sealed, err := store.Secrets(ctx, u.db, actor.Tenant, store.HookSecrets(id))
	if err != nil {
		return TestResult{}, err
	}
	key, err := u.ring.Open(actor.Tenant, store.HookSecrets(id), store.HookSecretField, sealed[store.HookSecretField])
	if err != nil {
		return TestResult{}, fmt.Errorf("the secret of hook %d: %w", id, err)
	}
	now := time.Now()
	body, err := json.Marshal(map[string]any{
		"id": "0", "schema": 1, "event": testEvent, "time": now.UnixMilli(), "tenant": actor.TenantName,
		"message": "This is a test of the hook " + h.Name + "; no operation is concerned.",
	})
	if err != nil {
		return TestResult{}, fmt.Errorf("make the body of a test: %w", err)
	}
	code, answer, failure := u.post(ctx, store.DueDelivery{Delivery: loom.Delivery{Hook: id, Event: testEvent}, To: h}, body, key)
	if ctx.Err() != nil {
		return TestResult{}, ctx.Err()
	}
	t := TestResult{OK: failure == nil && code >= 200 && code <= 299, Code: code, Took: time.Since(now), Body: string(body), Answer: shown(answer)}
	if !t.OK {
		t.Problem = trouble(code, failure)
	}
	result := map[bool]string{true: "ok", false: "failed"}[t.OK]
	return t, store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "test", Kind: "hook", Object: objectOf(id), Result: result, After: map[string]any{"code": code}})
	})
}

// shown is the beginning of an answer as text that can be shown.
func shown(answer string) string {
	answer = strings.ToValidUTF8(strings.ReplaceAll(answer, "\x00", ""), "�")
	if len(answer) <= maxShown {
		return answer
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(answer[cut]) {
		cut--
	}
	return answer[:cut] + "…"
}

package account

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// DeviceLife is how long a browser is known after a sign-in.
const DeviceLife = 180 * 24 * time.Hour

// maxDevice is the longest device cookie that is looked at, in bytes.
const maxDevice = 1024

// deviceContext is what device cookies are sealed for.
const deviceContext = "device cookie"

// device is what the cookie of a browser holds that signed in. It gives no right but
// to a count of its own, and that for one name and as long as the password is the same.
type device struct {
	ID   string `json:"id"`
	Name string `json:"name"` // hash of tenant and user
	// Password is a digest of the stored hash: a changed password forgets all browsers.
	Password string `json:"password"`
	Made     int64  `json:"made"` // seconds
}

// Device gives the cookie by which the browser of somebody who just signed in is known
// later on; zero for a user without a password.
func (a *Accounts) Device(ctx context.Context, actor loom.Actor) (loom.Secret, error) {
	hash, err := store.PasswordHash(ctx, a.db, actor.Tenant, actor.User)
	if err != nil || hash == "" {
		return loom.Secret{}, err
	}
	text, err := json.Marshal(device{
		ID: newSecret()[:22], Name: nameHash(actor.TenantName, string(actor.User)), Password: passwordDigest(hash), Made: time.Now().Unix(),
	})
	if err != nil {
		return loom.Secret{}, err
	}
	sealed, err := a.ring.SealBytes(deviceContext, text)
	return loom.NewSecret(base64.RawURLEncoding.EncodeToString(sealed)), err
}

// deviceOf gives the id of the browser that a cookie names, "" unless it was sealed
// here, is young enough and belongs to this user with this password.
func (a *Accounts) deviceOf(ctx context.Context, cookie loom.Secret, tenant loom.Tenant, user loom.UserID) (string, error) {
	d, ok := a.openDevice(cookie)
	if !ok || d.Name != nameHash(tenant.Name, string(user)) {
		return "", nil
	}
	hash, err := store.PasswordHash(ctx, a.db, tenant.ID, user)
	if err != nil || hash == "" || !hmac.Equal([]byte(d.Password), []byte(passwordDigest(hash))) {
		return "", err
	}
	return d.ID, nil
}

// Browser gives for whom a device cookie was sealed, a hash of tenant and user, "" unless it
// was sealed here and is young enough. It asks no database: it decides who waits for whom.
func (a *Accounts) Browser(cookie loom.Secret) string {
	d, _ := a.openDevice(cookie)
	return d.Name
}

func (a *Accounts) openDevice(cookie loom.Secret) (d device, ok bool) {
	text := cookie.Reveal()
	if text == "" || len(text) > maxDevice {
		return device{}, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return device{}, false // not ours
	}
	plain, err := a.ring.OpenBytes(deviceContext, sealed)
	if err != nil {
		return device{}, false // forged, or sealed with a key that is gone
	}
	if err := json.Unmarshal(plain, &d); err != nil || time.Since(time.Unix(d.Made, 0)) > DeviceLife {
		return device{}, false // of another release, or too old
	}
	return d, true
}

func passwordDigest(hash string) string {
	sum := sha256.Sum256([]byte("device\x00" + hash))
	return hex.EncodeToString(sum[:16])
}

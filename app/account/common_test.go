package account_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"

	"loom/app/account"
	"loom/app/loom"
)

// TestWeakPasswords: what is tried first is refused at its field, with what to do.
func TestWeakPasswords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.db.ExecContext(b.ctx, `UPDATE tenants SET name = 'blueberry-hill' WHERE id = $1`, b.admin.Tenant); err != nil {
		t.Fatal(err)
	}
	b.admin.TenantName = "blueberry-hill"
	for password, says := range map[string]string{
		"basketball": "common", "BasketBall": "common", "qwerty123456": "", "Password123!": "common", "123Password123": "common", "**letmein!!!!": "common",
		"1111111111": "repeated", "aaaaaaaaaaaa": "repeated", "üüüüüüüüüüüü": "repeated", "!!!!!!!!!!!!": "repeated",
		"abcdefghij": "sequence", "1234567890": "sequence", "qwertyuiop": "sequence", "QWERTZUIOP": "sequence", "9876543210": "sequence", "0123456789": "sequence",
		"zyxwvutsrq": "sequence", "90123456789012": "sequence", "poiuytrewq": "sequence", "qwertyuiopasdf": "sequence", "abcdefgh12": "sequence",
		"jack-o-lantern": "name of the user", "Jack-O-Lantern1": "name of the user", "jack-o-lanternJack-O-Lantern": "name of the user", "blueberry-hill": "name of the tenant", "Blueberry-Hill2024!": "name of the tenant",
		"short": "10 to 200 characters", "correct horse battery": "fine", "jack-o-lantern lives": "fine", "my basketball team": "fine", "7319402865": "fine",
		"trustno1 but verify": "fine", "a1234567890b": "fine", "Kx7#pQz!2mWv": "fine", "пароль из слов": "fine", "$$2$$4$$8$$1$$": "fine",
	} {
		if says == "" {
			says = "common"
		}
		_, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "jack-o-lantern", Password: loom.NewSecret(password)})
		if says == "fine" {
			if err != nil {
				t.Errorf("%q is refused: %v", password, err)
			}
			b.exec(t, `DELETE FROM users WHERE id = 'jack-o-lantern'`)
			continue
		}
		fields := loom.AsError(err).Fields
		if err == nil || len(fields) != 1 || fields[0].Field != "password" || !strings.Contains(fields[0].Message, says) {
			t.Errorf("%q: %v, want “%s”", password, err, says)
			b.exec(t, `DELETE FROM users WHERE id = 'jack-o-lantern'`)
		}
	}
}

// TestWeakPasswordsAtEveryDoor: the rule holds wherever a password is chosen, generated
// ones pass, and what is stored goes on working.
func TestWeakPasswordsAtEveryDoor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	weak := loom.NewSecret("Basketball1")
	_, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana", Password: weak})
	doors := map[string]error{"a new user": err}
	_, err = b.UpdateUser(b.ctx, b.admin, "user", account.UserChange{Password: &weak})
	doors["an administrator's change"] = err
	doors["one's own change"] = b.ChangePassword(b.ctx, b.user, b.passwords["demo/user"], weak, loom.Secret{}, false)
	_, err = b.SetPassword(b.ctx, "demo", "user", weak)
	doors["the command line"] = err
	same := b.passwords["demo/user"]
	doors["the present one again"] = b.ChangePassword(b.ctx, b.user, same, same, loom.Secret{}, false)
	for door, err := range doors {
		if fieldsOf(err) != "password" {
			t.Errorf("%s: %v", door, err)
		}
	}
	if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana"}); err != nil {
		t.Errorf("a generated one: %v", err)
	}
	if _, err := b.ResetPassword(b.ctx, b.admin, "user", false); err != nil {
		t.Errorf("a generated one at a reset: %v", err)
	}

	// A weak one that an older release stored.
	salt := []byte("0123456789abcdef")
	key := argon2.IDKey([]byte(weak.Reveal()), salt, 1, 64*1024, 2, 32)
	hash := "$argon2id$v=19$m=65536,t=1,p=2$" + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(key)
	b.exec(t, `UPDATE users SET password_hash = $1 WHERE id = 'admin' AND tenant_id = '`+string(b.admin.Tenant)+`'`, hash)
	if kind := b.try(t, "admin", weak.Reveal(), "192.0.2.1", loom.Secret{}); kind != "" {
		t.Errorf("a stored weak password: %q", kind)
	}
}

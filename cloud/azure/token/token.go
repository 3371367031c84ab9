// SPDX-License-Identifier: Apache-2.0

// Package token keeps bootstrap tokens: with them, the kubelets of new virtual
// machines ask the API server for their certificates.
//
// A token is a Secret in kube-system. There are three of them at most, by names that do
// not change, so that the right to read and delete can be limited to these. A token
// lives for a day, and is replaced when half of that is left; the one before stays until
// it expires, for virtual machines that are still booting. A new leader goes on with
// the token that it finds.
package token

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
)

const (
	// Lifetime is how long a token is valid.
	Lifetime = 24 * time.Hour
	// least is how long a token that is handed out is still valid at least: a virtual
	// machine boots and registers within this time.
	least = time.Hour
	// warning is how long before its end a token that the user has set is warned of.
	warning = 24 * time.Hour
	// Group is that of who comes with a token; the chart gives it the right to join.
	Group = "system:bootstrappers:karpenter"

	label  = v1beta1.Group + "/bootstrap-token"
	prefix = "bootstrap-token-"
)

// IDs are the public parts of tokens.
func IDs() []string { return []string{"karpn0", "karpn1", "karpn2"} }

// Config is what a Keeper works with. Everything is required.
type Config struct {
	Live   client.Reader // past any cache
	Client client.Writer
	Clock  clock.PassiveClock
	// Fixed is the token that the user has set; "" = tokens are made here.
	Fixed string
	// Warn tells the operator something.
	Warn func(message string)
}

// Keeper has a token that is valid. Safe for concurrent use.
type Keeper struct {
	config Config

	mu      sync.Mutex
	current held
	warned  time.Time // of the user's token
}

// held is a token and when it ends.
type held struct {
	text    string
	expires time.Time
}

// New returns a keeper without a token.
func New(c Config) *Keeper { return &Keeper{config: c} }

// form is what a token looks like: a public part and a secret.
var form = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)

// Valid reports whether the text is of the form of a token.
func Valid(text string) bool { return form.MatchString(text) }

// Token returns a token that is valid for an hour at least, and makes one if there is
// none.
func (k *Keeper) Token(ctx context.Context) (string, error) {
	if k.config.Fixed != "" {
		return k.config.Fixed, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.lasts(k.current, least) {
		if err := k.renewLocked(ctx); err != nil && !k.lasts(k.current, least) {
			return "", err
		}
	}
	return k.current.text, nil
}

// Renew does what is due: it deletes what has expired, and replaces a token of which
// half is over. Of a token that the user has set it warns, before that expires.
func (k *Keeper) Renew(ctx context.Context) error {
	if k.config.Fixed != "" {
		return k.watch(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.renewLocked(ctx)
}

func (k *Keeper) lasts(h held, d time.Duration) bool {
	return h.text != "" && h.expires.Sub(k.config.Clock.Now()) >= d
}

// renewLocked takes the newest token that there is, or makes one.
func (k *Keeper) renewLocked(ctx context.Context) error {
	var errs []error
	var newest held
	free := ""
	for _, id := range IDs() {
		found, err := k.look(ctx, id)
		switch {
		case err != nil:
			errs = append(errs, err)
		case found.text == "":
			free = id
		case found.expires.After(newest.expires):
			newest = found
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...) // what is held is held until it expires
	}
	if k.current = newest; k.lasts(newest, Lifetime/2) {
		return nil
	}
	if free == "" {
		return fmt.Errorf("three bootstrap tokens exist, and none of them lasts %v: delete one of the Secrets %s* in %s", Lifetime/2, prefix, metav1.NamespaceSystem)
	}
	made, err := k.create(ctx, free)
	if err != nil {
		return err
	}
	k.current = made
	return nil
}

// look returns the token of a public part, nothing if there is none. One that has
// expired is deleted.
func (k *Keeper) look(ctx context.Context, id string) (held, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: prefix + id}
	err := k.config.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return held{}, nil
	}
	if err != nil {
		return held{}, fmt.Errorf("read bootstrap token Secret %s: %w", key.Name, err)
	}
	out := held{text: id + "." + string(secret.Data["token-secret"])}
	out.expires, err = time.Parse(time.RFC3339, string(secret.Data["expiration"]))
	usable := err == nil && Valid(out.text) && secret.Labels[label] == "true"
	if usable && out.expires.After(k.config.Clock.Now()) {
		return out, nil
	}
	uid := secret.UID
	err = k.config.Client.Delete(ctx, secret, &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if client.IgnoreNotFound(err) != nil {
		return held{}, fmt.Errorf("delete bootstrap token Secret %s, which is over or damaged: %w", key.Name, err)
	}
	return held{}, nil
}

// create makes a token.
func (k *Keeper) create(ctx context.Context, id string) (held, error) {
	secret, err := random()
	if err != nil {
		return held{}, err
	}
	expires := k.config.Clock.Now().Add(Lifetime).UTC().Truncate(time.Second)
	err = k.config.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: prefix + id, Labels: map[string]string{label: "true"}},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte(secret), "expiration": []byte(expires.Format(time.RFC3339)),
			"usage-bootstrap-authentication": []byte("true"), "auth-extra-groups": []byte(Group),
			"description": []byte("for nodes that Karpenter launches"),
		},
	})
	if err != nil {
		return held{}, fmt.Errorf("create bootstrap token Secret %s: %w", prefix+id, err)
	}
	return held{id + "." + secret, expires}, nil
}

// random returns the secret part of a token.
func random() (string, error) {
	const letters, length = "abcdefghijklmnopqrstuvwxyz0123456789", 16
	out := make([]byte, length)
	for i := range out {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			return "", err
		}
		out[i] = letters[n.Int64()]
	}
	return string(out), nil
}

// watch warns when the token that the user has set ends soon, once an hour.
func (k *Keeper) watch(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.config.Clock.Now()
	if now.Sub(k.warned) < time.Hour {
		return nil
	}
	warn := func(text string) {
		k.warned = now
		k.config.Warn(text)
	}
	id := k.config.Fixed[:6]
	secret := &corev1.Secret{}
	err := k.config.Live.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: prefix + id}, secret)
	if apierrors.IsNotFound(err) {
		warn("KUBELET_BOOTSTRAP_TOKEN: there is no Secret " + prefix + id + " in kube-system, so new nodes cannot join; leave the setting out, and Karpenter makes tokens itself")
		return nil
	}
	if apierrors.IsForbidden(err) {
		warn("KUBELET_BOOTSTRAP_TOKEN: it is not known when the token expires: " + err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("read bootstrap token Secret %s: %w", prefix+id, err)
	}
	expires, err := time.Parse(time.RFC3339, string(secret.Data["expiration"]))
	if err != nil {
		return nil // it does not expire
	}
	if left := expires.Sub(now); left < warning {
		warn(fmt.Sprintf("KUBELET_BOOTSTRAP_TOKEN expires at %s, and new nodes cannot join then; leave the setting out, and Karpenter makes tokens itself", expires.UTC().Format(time.RFC3339)))
	}
	return nil
}

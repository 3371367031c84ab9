package explain

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errUnknown says that a token is nobody's.
var errUnknown = errors.New("the token is not valid in this cluster")

// forbiddenError says that a user may not read a path.
type forbiddenError struct{ user, path, reason string }

// Error names the user and what to grant.
func (e forbiddenError) Error() string {
	text := fmt.Sprintf("%s may not get %s: a ClusterRole with that path in nonResourceURLs allows it", e.user, e.path)
	if e.reason != "" {
		text += " (" + e.reason + ")"
	}
	return text
}

// Reviewer has the Kubernetes API judge who asks, and whether they may.
type Reviewer struct {
	Client client.Client // may create TokenReviews and SubjectAccessReviews
}

// Allow returns nil when the owner of the token may get the path.
func (r Reviewer) Allow(ctx context.Context, token, path string) error {
	if token == "" {
		return errUnknown
	}
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := r.Client.Create(ctx, who); err != nil {
		return fmt.Errorf("review token: %w", err)
	}
	if !who.Status.Authenticated {
		return errUnknown
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}
	if err := r.Client.Create(ctx, may); err != nil {
		return fmt.Errorf("review access of %s: %w", user.Username, err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return forbiddenError{user.Username, path, may.Status.Reason}
	}
	return nil
}

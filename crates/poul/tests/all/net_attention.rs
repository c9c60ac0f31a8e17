//! Attention among features as tokens: values against its definition, gradients against central differences.

use poul::net::Activation;

use super::net_gradients::check;

/// Scores of tokens in one pass are those of the matrix with a row for each token of each row.
#[test]
fn token_scores_are_scores_of_scaled_tokens() {
    check("scores", &[(3, 5), (5, 4), (3, 4), (4, 1)], 0.0, |tape, w| {
        let [x, p, weights] = [w[0], w[1], w[3]];
        // Far from the kink, on both sides of it.
        let sides = tape.constant(3, 4, &[6.0, -6.0, -6.0, 6.0].repeat(3));
        let own = tape.add(w[2], sides);
        let short = tape.token_scores(x, p, own, weights);
        let part = tape.gather(p, (0..3).flat_map(|_| 0..5));
        let column = tape.reshape(x, 15, 1);
        let scaled = tape.mul(part, column);
        let repeated = tape.gather(own, (0..3).flat_map(|row| [row; 5]));
        let joined = tape.add(scaled, repeated);
        let joined = tape.activate(joined, Activation::Relu);
        assert!(tape.value(joined).contains(&0.0));
        let long = tape.matmul(joined, weights);
        let long = tape.reshape(long, 3, 5);
        let difference = tape.sub(short, long);
        let size = tape.square(difference);
        let size = tape.sum(size);
        assert!(tape.value(size)[0] < 1e-10, "{}", tape.value(size)[0]);
        tape.add(short, long)
    });
}

/// A feature of 0 asks for nothing: its query takes the mean, as one of almost 0 does.
#[test]
fn token_attention_is_continuous_at_features_of_zero() {
    let x = |nothing: f32| -> Vec<f32> {
        (0..38).map(|i| if i % 3 == 1 { nothing } else { 1.0 - i as f32 / 20.0 }).collect()
    };
    check("zeros", &[(19, 19), (19, 5)], 0.0, |tape, w| {
        let [exact, near] = [0.0, 1e-12].map(|nothing| {
            let x = tape.constant(2, 19, &x(nothing));
            tape.token_attention(x, w[0], w[1])
        });
        let values = tape.value(exact).iter().zip(tape.value(near));
        assert!(values.clone().all(|(exact, near)| (exact - near).abs() < 1e-6));
        tape.add(exact, near)
    });
}

/// Attention by the products of embedded features is attention by the queries and keys of tokens x_j·E_j.
#[test]
fn token_attention_is_attention_among_scaled_tokens() {
    check("difference", &[(3, 5), (5, 4), (4, 4), (4, 4), (4, 4)], 1.0, |tape, w| {
        let [x, tokens, query, key, value] = [w[0], w[1], w[2], w[3], w[4]];
        let [q, k, v] = [query, key, value].map(|layer| tape.matmul(tokens, layer));
        let products = tape.matmul_nt(q, k);
        let short = tape.token_attention(x, products, v);
        let repeated = tape.gather(tokens, (0..3).flat_map(|_| 0..5));
        let column = tape.reshape(x, 15, 1);
        let scaled = tape.mul(repeated, column);
        let [q, k, v] = [query, key, value].map(|layer| tape.matmul(scaled, layer));
        let scores = tape.matmul_blocks(q, k, true, 3);
        let shares = tape.softmax(scores);
        let long = tape.matmul_blocks(shares, v, false, 3);
        let difference = tape.sub(short, long);
        let size = tape.square(difference);
        let size = tape.sum(size);
        assert!(tape.value(size)[0] < 1e-8, "{}", tape.value(size)[0]);
        tape.add(short, long)
    });
}

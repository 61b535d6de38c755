// An encoder as a reader of a tutorial writes it: reads weights.txt, prints every matrix; a mistake by its name.
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>
using Matrix = std::vector<std::vector<double>>;
std::map<std::string, Matrix> W;
Matrix mul(const Matrix &a, const Matrix &b) {
    Matrix c(a.size(), std::vector<double>(b[0].size(), 0));
    for (size_t i = 0; i < a.size(); i++) for (size_t k = 0; k < b.size(); k++) for (size_t j = 0; j < b[0].size(); j++) c[i][j] += a[i][k] * b[k][j];
    return c;
}
Matrix T(const Matrix &a) { Matrix t(a[0].size(), std::vector<double>(a.size())); for (size_t i = 0; i < a.size(); i++) for (size_t j = 0; j < a[0].size(); j++) t[j][i] = a[i][j]; return t; }
void print(const std::string &name, const Matrix &m) { std::cout << name << ":\n"; for (auto &r : m) { for (double x : r) std::cout << x << " "; std::cout << "\n"; } }
Matrix norm(const Matrix &x, const Matrix &g, const Matrix &b) {
    Matrix y = x;
    for (auto &r : y) { double m = 0, v = 0; for (double a : r) m += a; m /= r.size(); for (double a : r) v += (a - m) * (a - m); v /= r.size();
        for (size_t j = 0; j < r.size(); j++) r[j] = (r[j] - m) / std::sqrt(v + 1e-5) * g[0][j] + b[0][j]; }
    return y;
}
int main(int argc, char **argv) {
    std::string fault = argc > 1 ? argv[1] : "";
    std::ifstream f("weights.txt"); std::string name; int r, c;
    while (f >> name >> r >> c) { Matrix m(r, std::vector<double>(c)); for (auto &row : m) for (auto &x : row) f >> x; W[name] = m; }
    std::vector<int> ids = {1, 2, 3, 4, 5, 1, 6, 7};
    int n = ids.size(), d = 16, heads = 2, dk = d / heads;
    Matrix x;
    for (int id : ids) x.push_back(W["embedding.tokens.weight"][id]);
    print("Token embeddings", x);
    Matrix pe(n, std::vector<double>(d));
    for (int p = 0; p < n; p++) for (int j = 0; j < d; j++) { double a = p / std::pow(10000, 2.0 * (j / 2) / d); pe[p][j] = j % 2 ? std::cos(a) : std::sin(a); }
    print("Positional encoding", pe);
    for (int i = 0; i < n; i++) for (int j = 0; j < d; j++) x[i][j] += pe[i][j];
    for (int l = 0; l < 2; l++) {
        std::string at = "encoder." + std::to_string(l) + ".";
        std::cout << "=== Layer " << l << " ===\n";
        Matrix Q = mul(x, W[at + "self_attention.query.weight"]), K = mul(x, W[at + "self_attention.key.weight"]), V = mul(x, W[at + "self_attention.value.weight"]);
        print("Q", Q); print("K", K); print("V", V);
        Matrix concat(n, std::vector<double>(d));
        for (int h = 0; h < heads; h++) {
            std::cout << "Head " << h << "\n";
            Matrix q, k, v;
            auto part = [&](const Matrix &m) { Matrix o; for (auto &row : m) o.emplace_back(row.begin() + h * dk, row.begin() + (h + 1) * dk); return o; };
            q = part(Q); k = part(K); v = part(V);
            Matrix s = mul(q, T(k));
            print("Attention scores", s);
            double by = fault == "scale" ? std::sqrt(d) : std::sqrt(dk);
            for (auto &row : s) for (auto &y : row) y /= by;
            print("Scaled scores", s);
            for (auto &row : s) { double sum = 0; for (auto &y : row) { y = std::exp(y); sum += y; } for (auto &y : row) y /= sum; }
            print("Attention weights (softmax)", s);
            Matrix o = mul(s, v);
            for (int i = 0; i < n; i++) for (int j = 0; j < dk; j++) concat[i][h * dk + j] = o[i][j];
        }
        print("Concatenated heads", concat);
        Matrix a = mul(concat, W[at + "self_attention.output.weight"]);
        print("Multi-head attention output", a);
        for (int i = 0; i < n; i++) for (int j = 0; j < d; j++) a[i][j] += fault == "residual" ? 0 : x[i][j];
        x = norm(a, W[at + "self_attention.norm.weight"], W[at + "self_attention.norm.bias"]);
        print("Add & Norm 1", x);
        Matrix hid = mul(x, W[at + "feed_forward.hidden.weight"]);
        for (auto &row : hid) for (auto &y : row) y = y > 0 ? y : 0;
        print("After ReLU", hid);
        Matrix ff = mul(hid, W[at + "feed_forward.output.weight"]);
        for (int i = 0; i < n; i++) for (int j = 0; j < d; j++) ff[i][j] += x[i][j];
        x = norm(ff, W[at + "feed_forward.norm.weight"], W[at + "feed_forward.norm.bias"]);
        print("Encoder layer output", x);
    }
}
